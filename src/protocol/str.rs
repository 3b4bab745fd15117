//! Text of the wire: a cheaply cloned, immutable string that is a slice of the frame it came in.
//!
//! A `Str` keeps its whole frame alive. Who stores one for longer than a request takes
//! [`Str::detach`] first, so that a name of ten bytes does not pin a frame of a hundred megabytes.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

use bytes::Bytes;
use bytestring::ByteString;

/// UTF-8 text; compares, orders and hashes as a `str` does.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Str(ByteString);

impl Str {
    pub const EMPTY: Self = Self(ByteString::from_static(""));

    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        Self(ByteString::from_static(text))
    }

    /// Takes the bytes as they are. What is not UTF-8 becomes replacement characters (and a copy),
    /// as Kafka does it: such a name is served, it merely matches nothing.
    #[must_use]
    pub fn from_wire(bytes: Bytes) -> Self {
        match ByteString::try_from(bytes.clone()) {
            Ok(text) => Self(text),
            Err(_) => Self(String::from_utf8_lossy(&bytes).into_owned().into()),
        }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same text in memory of its own.
    #[must_use]
    pub fn detach(&self) -> Self {
        Self(ByteString::from(self.as_str().to_owned()))
    }

    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0.into_bytes()
    }
}

impl Deref for Str {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Str {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Str {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&'static str> for Str {
    fn from(text: &'static str) -> Self {
        Self::from_static(text)
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl PartialEq<str> for Str {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Str {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}
