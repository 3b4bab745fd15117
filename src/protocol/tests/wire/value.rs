//! Values of a schema: made at random, encoded by the book, and shown the way our types show
//! themselves.

use bytes::Bytes;
use protocol::{ErrorCode, Uuid};

use crate::entropy::Entropy;
use crate::schema::{Field, Kind, Structure, Versions, within};

/// `None` is null.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    /// The bits, so that every value equals itself.
    Float(u64),
    Text(String),
    Uuid([u8; 16]),
    Bytes(Vec<u8>),
    List(Vec<Value>),
    Structure(Vec<Value>),
}

/// In which version, and which of the forms that mean the same.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub version: i16,
    pub flexible: bool,
    /// Ends every structure with a tagged field that nobody knows.
    pub unknown_tags: bool,
    /// Writes null as another negative length than -1.
    pub odd_nulls: bool,
}

/// A structure of random values; fields that the version does not have keep their default.
pub fn random(structure: &Structure, version: i16, entropy: &mut Entropy) -> Value {
    Value::Structure(
        structure
            .fields
            .iter()
            .map(|field| match within(version, field.versions) {
                true if field.tag.is_some() && entropy.once_in(2) => default(field),
                true if within(version, field.nullable) && entropy.once_in(4) => Value::Null,
                true => random_of(&field.kind, version, entropy),
                false => default(field),
            })
            .collect(),
    )
}

fn random_of(kind: &Kind, version: i16, entropy: &mut Entropy) -> Value {
    match kind {
        Kind::Bool => Value::Bool(entropy.once_in(2)),
        Kind::Integer { bytes, signed } => {
            let shift = 64 - 8 * bytes;
            let small = entropy.once_in(2);
            let bits = if small { entropy.below(100) << shift } else { entropy.next() };
            let signed_value = bits as i64 >> shift;
            Value::Integer(if *signed { signed_value } else { (bits >> shift) as i64 })
        }
        Kind::Float => Value::Float(entropy.next()),
        Kind::Text => Value::Text(random_text(entropy)),
        Kind::Uuid => {
            let halves = u128::from(entropy.next()) << 64 | u128::from(entropy.next());
            Value::Uuid(halves.to_be_bytes())
        }
        Kind::Bytes | Kind::Records => {
            let length = if entropy.once_in(8) { 200 } else { 6 };
            let length = entropy.below(length);
            Value::Bytes((0..length).map(|_| entropy.next() as u8).collect())
        }
        Kind::List(element) => {
            let count = entropy.below(4);
            Value::List((0..count).map(|_| random_of(element, version, entropy)).collect())
        }
        Kind::Structure(structure) => random(structure, version, entropy),
    }
}

fn random_text(entropy: &mut Entropy) -> String {
    let letters = ['a', 'Z', '0', '-', '"', '\n', 'é', '語', '🌊'];
    let length = if entropy.once_in(8) { 150 } else { 8 };
    let length = entropy.below(length);
    (0..length).map(|_| letters[entropy.below(letters.len() as u64) as usize]).collect()
}

/// What a field holds that nobody has set, by the rules of Kafka's generator.
pub fn default(field: &Field) -> Value {
    let text = field.default.as_deref().unwrap_or_default();
    match &field.kind {
        _ if text == "null" => Value::Null,
        Kind::Bool => Value::Bool(text.eq_ignore_ascii_case("true")),
        Kind::Integer { .. } => Value::Integer(integer(text)),
        Kind::Float => Value::Float(text.parse::<f64>().unwrap_or_default().to_bits()),
        Kind::Text => Value::Text(text.to_owned()),
        Kind::Uuid => Value::Uuid([0; 16]),
        Kind::Bytes => Value::Bytes(Vec::new()),
        Kind::Records if field.nullable.0 <= field.nullable.1 => Value::Null,
        Kind::Records => Value::Bytes(Vec::new()),
        Kind::List(_) => Value::List(Vec::new()),
        Kind::Structure(structure) => defaults(structure),
    }
}

/// A structure that nobody has touched.
pub fn defaults(structure: &Structure) -> Value {
    Value::Structure(structure.fields.iter().map(default).collect())
}

fn integer(text: &str) -> i64 {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).expect("a hexadecimal default"),
        None if text.is_empty() => 0,
        None => text.parse().expect("a decimal default"),
    }
}

/// Appends the structure as Kafka would write it.
pub fn encode(value: &Value, structure: &Structure, form: Form, out: &mut Vec<u8>) {
    let Value::Structure(values) = value else { panic!("{value:?} for {}", structure.name) };
    let present = || {
        let fields = structure.fields.iter().zip(values);
        fields.filter(|(field, _)| within(form.version, field.versions))
    };
    for (field, value) in present().filter(|(field, _)| field.tag.is_none()) {
        let nullable = within(form.version, field.nullable);
        if *value == Value::Null && !nullable {
            // A default that this version cannot say: ours are empty then.
            encode_of(&empty(&field.kind), &field.kind, false, form, out);
        } else {
            encode_of(value, &field.kind, nullable, form, out);
        }
    }
    if !form.flexible {
        return;
    }
    let mut tagged: Vec<(u32, Vec<u8>)> = present()
        .filter(|(field, value)| field.tag.is_some() && **value != default(field))
        .map(|(field, value)| {
            let mut bytes = Vec::new();
            let nullable = within(form.version, field.nullable);
            encode_of(value, &field.kind, nullable, form, &mut bytes);
            (field.tag.unwrap(), bytes)
        })
        .collect();
    tagged.sort();
    if form.unknown_tags {
        tagged.push((1000, b"later".to_vec()));
    }
    varint(tagged.len() as u64, out);
    for (tag, bytes) in tagged {
        varint(u64::from(tag), out);
        varint(bytes.len() as u64, out);
        out.extend(bytes);
    }
}

fn empty(kind: &Kind) -> Value {
    match kind {
        Kind::Text => Value::Text(String::new()),
        Kind::Bytes | Kind::Records => Value::Bytes(Vec::new()),
        Kind::List(_) => Value::List(Vec::new()),
        Kind::Structure(structure) => defaults(structure),
        _ => panic!("it has no null"),
    }
}

fn encode_of(value: &Value, kind: &Kind, nullable: bool, form: Form, out: &mut Vec<u8>) {
    match (value, kind) {
        (Value::Null, _) => encode_null(kind, form, out),
        (Value::Bool(value), _) => out.push(u8::from(*value)),
        (Value::Integer(value), Kind::Integer { bytes, .. }) => {
            out.extend(&value.to_be_bytes()[8 - bytes..]);
        }
        (Value::Float(bits), _) => out.extend(bits.to_be_bytes()),
        (Value::Uuid(bytes), _) => out.extend(bytes),
        (Value::Text(text), _) => {
            if form.flexible {
                varint(text.len() as u64 + 1, out);
            } else {
                out.extend((text.len() as i16).to_be_bytes());
            }
            out.extend(text.as_bytes());
        }
        (Value::Bytes(bytes), _) => {
            length(bytes.len(), form, out);
            out.extend(bytes);
        }
        (Value::List(elements), Kind::List(kind)) => {
            length(elements.len(), form, out);
            elements.iter().for_each(|element| encode_of(element, kind, false, form, out));
        }
        (Value::Structure(_), Kind::Structure(structure)) => {
            if nullable {
                out.push(1);
            }
            encode(value, structure, form, out);
        }
        _ => panic!("{value:?} is of another kind"),
    }
}

fn encode_null(kind: &Kind, form: Form, out: &mut Vec<u8>) {
    match kind {
        Kind::Structure(_) => out.push(if form.odd_nulls { 0x80 } else { 0xff }),
        // As signed 32-bit numbers: a length of -2 is written as -1.
        _ if form.flexible && form.odd_nulls => varint(u64::from(u32::MAX), out),
        _ if form.flexible => out.push(0),
        Kind::Text => out.extend(if form.odd_nulls { i16::MIN } else { -1 }.to_be_bytes()),
        _ => out.extend(if form.odd_nulls { -7_i32 } else { -1 }.to_be_bytes()),
    }
}

fn length(length: usize, form: Form, out: &mut Vec<u8>) {
    if form.flexible {
        varint(length as u64 + 1, out);
    } else {
        out.extend((length as i32).to_be_bytes());
    }
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value > 0x7f {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Two structures of one schema file have the same name there; ours need two.
const RENAMED: &[(&str, &str, &str)] = &[
    ("AlterClientQuotasRequest", "EntryData", "RequestEntryData"),
    ("DescribeQuorumRequest", "TopicData", "RequestTopicData"),
    ("DescribeQuorumRequest", "PartitionData", "RequestPartitionData"),
];

/// The value as the debug format of our structures writes it.
pub fn shown(value: &Value, structure: &Structure, message: &str, versions: Versions) -> String {
    let Value::Structure(values) = value else { panic!("{value:?} for {}", structure.name) };
    let renamed = RENAMED.iter().find(|row| row.0 == message && row.1 == structure.name);
    let name = renamed.map_or(structure.name.as_str(), |row| row.2);
    let overlaps = |other: Versions| other.0.max(versions.0) <= other.1.min(versions.1);
    let fields: Vec<String> = structure
        .fields
        .iter()
        .zip(values)
        .filter(|(field, _)| overlaps(field.versions))
        .map(|(field, value)| {
            let error_code = field.name.to_ascii_lowercase().ends_with("errorcode");
            let text = match value {
                Value::Integer(code) if error_code => format!("{:?}", ErrorCode(*code as i16)),
                _ => shown_of(value, &field.kind, message, versions),
            };
            let nullable = overlaps(field.nullable) && *value != Value::Null;
            let text = if nullable { format!("Some({text})") } else { text };
            format!("{}: {text}", snake_case(&field.name))
        })
        .collect();
    if fields.is_empty() {
        return name.to_owned();
    }
    format!("{name} {{ {} }}", fields.join(", "))
}

fn shown_of(value: &Value, kind: &Kind, message: &str, versions: Versions) -> String {
    match (value, kind) {
        (Value::Null, _) => "None".to_owned(),
        (Value::Bool(value), _) => format!("{value:?}"),
        (Value::Integer(value), _) => format!("{value:?}"),
        (Value::Float(bits), _) => format!("{:?}", f64::from_bits(*bits)),
        (Value::Text(text), _) => format!("{text:?}"),
        (Value::Uuid(bytes), _) => format!("{:?}", Uuid(*bytes)),
        (Value::Bytes(bytes), Kind::Records) => format!("Records({} bytes)", bytes.len()),
        (Value::Bytes(bytes), _) => format!("{:?}", Bytes::copy_from_slice(bytes)),
        (Value::List(elements), Kind::List(kind)) => {
            let elements: Vec<String> =
                elements.iter().map(|value| shown_of(value, kind, message, versions)).collect();
            format!("[{}]", elements.join(", "))
        }
        (Value::Structure(_), Kind::Structure(structure)) => {
            shown(value, structure, message, versions)
        }
        _ => panic!("{value:?} is of another kind"),
    }
}

/// `LogStartOffset` is `log_start_offset`, `IncludeISR` would be `include_isr`.
fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let after_lower = at > 0 && !letters[at - 1].is_uppercase();
        let before_lower = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        if at > 0 && letter.is_uppercase() && (after_lower || before_lower) {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}
