//! What stands before every body: which request this is, and which request an answer is for.

use crate::wire::Wire;
use crate::{ApiKey, DecodeError, Decoder, Encoder, Fault, Str};

/// The header of a request (versions 1 and 2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHeader {
    /// The number of the API. Decoding refuses those that the version table does not have.
    pub api_key: i16,
    /// Any version at all: an ApiVersions request of an unknown version has to be answered.
    pub api_version: i16,
    /// Repeated in the answer. Answers leave in the order of the requests in any case.
    pub correlation_id: i32,
    pub client_id: Option<Str>,
}

impl RequestHeader {
    /// Reads the header at the start of a frame.
    pub fn decode(decoder: &mut Decoder) -> Result<Self, DecodeError> {
        decoder.set_flexible(false);
        let api_key = i16::read(decoder, 0)?;
        let api_version = i16::read(decoder, 0)?;
        let Some(key) = ApiKey::from_wire(api_key) else { return Err(Fault::UnknownApi.into()) };
        let correlation_id = i32::read(decoder, 0)?;
        // The client id keeps its two-byte length in flexible versions too.
        let client_id = decoder.nullable_string()?;
        if key.spec().request_header_version(api_version) == 2 {
            decoder.tagged_fields(|_, _| Ok(false))?;
        }
        Ok(Self { api_key, api_version, correlation_id, client_id })
    }

    /// Writes the header; an `api_key` outside the version table gets no tagged fields.
    pub fn encode(&self, encoder: &mut Encoder) {
        encoder.set_flexible(false);
        self.api_key.write(encoder, 0);
        self.api_version.write(encoder, 0);
        self.correlation_id.write(encoder, 0);
        self.client_id.write(encoder, 0);
        let spec = ApiKey::from_wire(self.api_key).map(ApiKey::spec);
        if spec.is_some_and(|spec| spec.request_header_version(self.api_version) == 2) {
            encoder.unsigned_varint(0);
        }
    }
}

/// The header of an answer (versions 0 and 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseHeader {
    pub correlation_id: i32,
}

impl ResponseHeader {
    /// Reads the header of an answer to a request of this API and version.
    pub fn decode(decoder: &mut Decoder, key: ApiKey, version: i16) -> Result<Self, DecodeError> {
        let correlation_id = i32::read(decoder, 0)?;
        if key.spec().response_header_version(version) == 1 {
            decoder.tagged_fields(|_, _| Ok(false))?;
        }
        Ok(Self { correlation_id })
    }

    /// Writes the header of an answer to a request of this API and version.
    pub fn encode(self, encoder: &mut Encoder, key: ApiKey, version: i16) {
        self.correlation_id.write(encoder, 0);
        if key.spec().response_header_version(version) == 1 {
            encoder.unsigned_varint(0);
        }
    }
}
