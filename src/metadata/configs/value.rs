//! Configuration values: from text by Kafka's rules, back to text in one canonical form.
//!
//! Kafka's rules: surrounding blanks go; booleans ignore case; whole numbers may have a sign and
//! nothing else; lists split at commas and say each element once. Deliberately stricter: a value
//! has a greatest length, holds no control characters, and a fraction is a number.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use super::key::{ConfigKey, Kind, Rule};

/// Longer values are refused: they end up in every answer and in every broker's memory.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;

/// A parsed value; Display gives its canonical text.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Boolean(bool),
    Whole(i64),
    Fraction(f64),
    Text(String),
    List(Vec<String>),
}

/// Why a text is no value of a key.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ValueError {
    #[error("it is longer than {VALUE_BYTES_MAX} bytes")]
    TooLong,
    #[error("it contains control characters")]
    ControlCharacters,
    #[error("it has to be true or false")]
    NotBoolean,
    #[error("it has to be a whole number of {bits} bits")]
    NotWhole { bits: u32 },
    #[error("it has to be a number")]
    NotFraction,
    #[error("it has to be at least {0}")]
    TooSmall(i64),
    #[error("it has to be at most {0}")]
    TooLarge(i64),
    #[error("it has to lie between {0} and {1}")]
    Outside(f64, f64),
    #[error("it has to be one of {}", .0.join(", "))]
    NotOneOf(&'static [&'static str]),
    #[error("it has to be a gzip level from 1 to 9, or -1 for the usual one")]
    NotGzipLevel,
    #[error("it has to be * or a list of partition:node pairs")]
    NotThrottledReplicas,
    #[error("it has to be a list of address:count pairs")]
    NotAddressLimits,
    #[error("it may not be empty")]
    Empty,
}

impl ConfigKey {
    pub fn parse(&self, text: &str) -> Result<Value, ValueError> {
        if text.len() > VALUE_BYTES_MAX {
            return Err(ValueError::TooLong);
        }
        let text = text.trim();
        if text.chars().any(char::is_control) {
            return Err(ValueError::ControlCharacters);
        }
        let value = match self.kind {
            Kind::Boolean => parse_boolean(text)?,
            Kind::Short => parse_whole(text, 16)?,
            Kind::Int => parse_whole(text, 32)?,
            Kind::Long => parse_whole(text, 64)?,
            Kind::Double => parse_fraction(text)?,
            Kind::List => parse_list(text),
            Kind::Text | Kind::Class | Kind::Password => Value::Text(text.to_owned()),
        };
        self.rule.check(&value)?;
        Ok(value)
    }
}

fn parse_boolean(text: &str) -> Result<Value, ValueError> {
    if text.eq_ignore_ascii_case("true") {
        Ok(Value::Boolean(true))
    } else if text.eq_ignore_ascii_case("false") {
        Ok(Value::Boolean(false))
    } else {
        Err(ValueError::NotBoolean)
    }
}

fn parse_whole(text: &str, bits: u32) -> Result<Value, ValueError> {
    let wrong = ValueError::NotWhole { bits };
    let value: i64 = text.parse().map_err(|_| wrong.clone())?;
    let unused = 64 - bits;
    if (value << unused) >> unused == value { Ok(Value::Whole(value)) } else { Err(wrong) }
}

fn parse_fraction(text: &str) -> Result<Value, ValueError> {
    // Java takes a suffix that says which of its two kinds of fraction is meant.
    let digits = text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text);
    let is_number = digits.ends_with(|last: char| last.is_ascii_digit() || last == '.');
    match digits.parse::<f64>() {
        Ok(value) if is_number && value.is_finite() => Ok(Value::Fraction(value)),
        _ => Err(ValueError::NotFraction),
    }
}

fn parse_list(text: &str) -> Value {
    let mut known = BTreeSet::new();
    let elements = text.split(',').map(str::trim);
    let elements = elements.filter(|element| !element.is_empty() && known.insert(*element));
    Value::List(elements.map(str::to_owned).collect())
}

impl Rule {
    fn check(&self, value: &Value) -> Result<(), ValueError> {
        match (self, value) {
            (Self::AtLeast(least), Value::Whole(whole)) => within(*whole, *least, i64::MAX),
            (Self::Between(least, most), Value::Whole(whole)) => within(*whole, *least, *most),
            (Self::Fraction(least, most), Value::Fraction(fraction)) => {
                let inside = (*least..=*most).contains(fraction);
                inside.then_some(()).ok_or(ValueError::Outside(*least, *most))
            }
            (Self::OneOf(names), Value::Text(text)) => {
                names.contains(&text.as_str()).then_some(()).ok_or(ValueError::NotOneOf(names))
            }
            (Self::OneOfIgnoringCase(names), Value::Text(text)) => {
                let known = names.iter().any(|name| name.eq_ignore_ascii_case(text));
                known.then_some(()).ok_or(ValueError::NotOneOf(names))
            }
            (Self::EachOneOf(names), Value::List(elements)) => {
                let known = elements.iter().all(|element| names.contains(&element.as_str()));
                known.then_some(()).ok_or(ValueError::NotOneOf(names))
            }
            (Self::GzipLevel, Value::Whole(level)) => {
                let known = *level == -1 || (1..=9).contains(level);
                known.then_some(()).ok_or(ValueError::NotGzipLevel)
            }
            (Self::ThrottledReplicas, Value::List(elements)) => {
                let known = is_everything(elements) || elements.iter().all(|it| is_pair(it));
                known.then_some(()).ok_or(ValueError::NotThrottledReplicas)
            }
            (Self::AddressLimits, Value::Text(text)) => {
                parse_limits(text).map(|_| ()).ok_or(ValueError::NotAddressLimits)
            }
            (Self::NotEmpty, Value::Text(text)) if text.is_empty() => Err(ValueError::Empty),
            (Self::NotEmpty, Value::List(elements)) if elements.is_empty() => {
                Err(ValueError::Empty)
            }
            _ => Ok(()),
        }
    }
}

fn within(value: i64, least: i64, most: i64) -> Result<(), ValueError> {
    if value < least {
        Err(ValueError::TooSmall(least))
    } else if value > most {
        Err(ValueError::TooLarge(most))
    } else {
        Ok(())
    }
}

fn is_everything(elements: &[String]) -> bool {
    elements.len() == 1 && elements[0] == "*"
}

fn is_pair(element: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    element.split_once(':').is_some_and(|(partition, node)| number(partition) && number(node))
}

/// How many connections an address may have open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressLimit {
    pub address: IpAddr,
    pub connections: i32,
}

/// `address:count, address:count`; an address of IPv6 may stand in brackets.
pub(super) fn parse_limits(text: &str) -> Option<Vec<AddressLimit>> {
    text.split(',').map(str::trim).filter(|it| !it.is_empty()).map(parse_limit).collect()
}

fn parse_limit(text: &str) -> Option<AddressLimit> {
    let (address, connections) = text.rsplit_once(':')?;
    let address = address.trim().trim_start_matches('[').trim_end_matches(']').parse().ok()?;
    let connections: i32 = connections.trim().parse().ok()?;
    (connections >= 0).then_some(AddressLimit { address, connections })
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => value.fmt(out),
            Self::Whole(value) => value.fmt(out),
            Self::Fraction(value) => write_fraction(*value, out),
            Self::Text(value) => out.write_str(value),
            Self::List(elements) => out.write_str(&elements.join(",")),
        }
    }
}

/// As Java writes it, which is what clients compare with: always a point, an exponent far from 1.
fn write_fraction(value: f64, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let size = value.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return write!(out, "{value:?}");
    }
    let scientific = format!("{value:e}");
    match scientific.split_once('e') {
        Some((digits, power)) if digits.contains('.') => write!(out, "{digits}E{power}"),
        Some((digits, power)) => write!(out, "{digits}.0E{power}"),
        None => out.write_str(&scientific),
    }
}
