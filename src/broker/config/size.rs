//! Sizes as people write them: `512MiB`, `1g`, `65536`. Binary multiples throughout.

use std::fmt;
use std::str::FromStr;

use crate::config::ConfigError;

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(u64);

impl ByteSize {
    pub const fn new(bytes: u64) -> ByteSize {
        ByteSize(bytes)
    }

    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<ByteSize, ConfigError> {
        let wrong = || {
            ConfigError(format!(
                "'{text}' is no size; write a number with KiB, MiB or GiB, like 512MiB"
            ))
        };
        let text = text.trim();
        let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let shift = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            "t" | "tb" | "tib" => 40,
            _ => return Err(wrong()),
        };
        number.checked_mul(1 << shift).map(ByteSize).ok_or_else(wrong)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
        for (shift, unit) in units {
            let whole = 1u64 << shift;
            if self.0 >= whole {
                let tenths = (u128::from(self.0) * 10 / u128::from(whole)) as u64;
                return match tenths % 10 {
                    0 => write!(f, "{}{unit}", tenths / 10),
                    part => write!(f, "{}.{part}{unit}", tenths / 10),
                };
            }
        }
        write!(f, "{}B", self.0)
    }
}
