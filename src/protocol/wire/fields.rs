//! The types a field can have, and the encoding of each.

use bytes::Bytes;

use super::{DecodeError, Decoder, Encoder, Fault, Records};
use crate::{ErrorCode, Str, Uuid};

/// A value with an encoding of its own in every version of the message it stands in.
pub(crate) trait Wire: Sized {
    /// The fewest bytes that any value takes. Bounds how many a list can really have.
    fn bytes_min(version: i16, flexible: bool) -> usize;
    fn read(decoder: &mut Decoder, version: i16) -> Result<Self, DecodeError>;
    fn write(&self, encoder: &mut Encoder, version: i16);
}

/// A value that can be absent, and how its absence is told from its presence.
pub(crate) trait Nullable: Wire + Default {
    fn null_bytes_min(version: i16, flexible: bool) -> usize {
        Self::bytes_min(version, flexible)
    }
    fn read_nullable(decoder: &mut Decoder, version: i16) -> Result<Option<Self>, DecodeError>;
    fn write_null(encoder: &mut Encoder);
    fn write_present(&self, encoder: &mut Encoder, version: i16) {
        self.write(encoder, version);
    }
}

macro_rules! integers {
    ($($integer:ident)*) => { $(
        impl Wire for $integer {
            fn bytes_min(_: i16, _: bool) -> usize {
                size_of::<Self>()
            }

            fn read(decoder: &mut Decoder, _: i16) -> Result<Self, DecodeError> {
                Ok(Self::from_be_bytes(decoder.take()?))
            }

            fn write(&self, encoder: &mut Encoder, _: i16) {
                encoder.put(&self.to_be_bytes());
            }
        }
    )* };
}

integers!(i8 i16 u16 i32 i64 f64);

impl Wire for bool {
    fn bytes_min(_: i16, _: bool) -> usize {
        1
    }

    fn read(decoder: &mut Decoder, _: i16) -> Result<Self, DecodeError> {
        let [byte] = decoder.take()?;
        Ok(byte != 0)
    }

    fn write(&self, encoder: &mut Encoder, _: i16) {
        encoder.put(&[u8::from(*self)]);
    }
}

impl Wire for Uuid {
    fn bytes_min(_: i16, _: bool) -> usize {
        16
    }

    fn read(decoder: &mut Decoder, _: i16) -> Result<Self, DecodeError> {
        decoder.uuid()
    }

    fn write(&self, encoder: &mut Encoder, _: i16) {
        encoder.put(&self.0);
    }
}

impl Wire for ErrorCode {
    fn bytes_min(_: i16, _: bool) -> usize {
        2
    }

    fn read(decoder: &mut Decoder, version: i16) -> Result<Self, DecodeError> {
        Ok(Self(i16::read(decoder, version)?))
    }

    fn write(&self, encoder: &mut Encoder, version: i16) {
        self.0.write(encoder, version);
    }
}

/// The types whose length says whether they are there.
macro_rules! told_by_their_length {
    ($($value:ty: $fixed:literal, $read:ident, $write:expr, $null:ident;)*) => { $(
        impl Wire for $value {
            fn bytes_min(_: i16, flexible: bool) -> usize {
                if flexible { 1 } else { $fixed }
            }

            fn read(decoder: &mut Decoder, _: i16) -> Result<Self, DecodeError> {
                decoder.$read()?.ok_or_else(|| Fault::Null.into())
            }

            fn write(&self, encoder: &mut Encoder, _: i16) {
                let write: fn(&Self, &mut Encoder) = $write;
                write(self, encoder);
            }
        }

        impl Nullable for $value {
            fn read_nullable(decoder: &mut Decoder, _: i16) -> Result<Option<Self>, DecodeError> {
                decoder.$read()
            }

            fn write_null(encoder: &mut Encoder) {
                encoder.$null();
            }
        }
    )* };
}

told_by_their_length! {
    Str: 2, nullable_string, |text, encoder| encoder.string(text), null_string;
    Records: 4, nullable_records, |records, encoder| encoder.records(records), null_long;
    Bytes: 4, nullable_bytes, |bytes, encoder| {
        encoder.long_length(bytes.len());
        encoder.put(bytes);
    }, null_long;
}

impl<T: Wire> Wire for Vec<T> {
    fn bytes_min(_: i16, flexible: bool) -> usize {
        if flexible { 1 } else { 4 }
    }

    fn read(decoder: &mut Decoder, version: i16) -> Result<Self, DecodeError> {
        decoder.nullable_list(version)?.ok_or_else(|| Fault::Null.into())
    }

    fn write(&self, encoder: &mut Encoder, version: i16) {
        encoder.long_length(self.len());
        for element in self {
            if !encoder.take_element() {
                return;
            }
            element.write(encoder, version);
        }
    }
}

impl<T: Wire> Nullable for Vec<T> {
    fn read_nullable(decoder: &mut Decoder, version: i16) -> Result<Option<Self>, DecodeError> {
        decoder.nullable_list(version)
    }

    fn write_null(encoder: &mut Encoder) {
        encoder.null_long();
    }
}

impl<T: Nullable> Wire for Option<T> {
    fn bytes_min(version: i16, flexible: bool) -> usize {
        T::null_bytes_min(version, flexible)
    }

    fn read(decoder: &mut Decoder, version: i16) -> Result<Self, DecodeError> {
        T::read_nullable(decoder, version)
    }

    fn write(&self, encoder: &mut Encoder, version: i16) {
        match self {
            Some(value) => value.write_present(encoder, version),
            None => T::write_null(encoder),
        }
    }
}
