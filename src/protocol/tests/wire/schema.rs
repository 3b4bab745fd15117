//! Kafka's message schemas, as the jar states them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value as Json;

use crate::jar;

/// Versions from the first to the second number; none if the first is the larger one.
pub type Versions = (i16, i16);

pub struct Schemas(BTreeMap<String, Message>);

pub struct Message {
    pub versions: Versions,
    pub flexible: Versions,
    pub unstable: bool,
    pub key: Option<i16>,
    pub for_brokers: bool,
    pub fields: Arc<Structure>,
}

pub struct Structure {
    pub name: String,
    pub fields: Vec<Field>,
}

pub struct Field {
    pub name: String,
    pub kind: Kind,
    pub versions: Versions,
    pub nullable: Versions,
    pub tag: Option<u32>,
    pub default: Option<String>,
}

#[derive(Clone)]
pub enum Kind {
    Bool,
    Integer { bytes: usize, signed: bool },
    Float,
    Text,
    Uuid,
    Bytes,
    Records,
    List(Box<Kind>),
    Structure(Arc<Structure>),
}

impl Schemas {
    /// The schemas of the jar, fetched and parsed once.
    pub fn of_jar() -> &'static Self {
        static PARSED: OnceLock<Schemas> = OnceLock::new();
        PARSED.get_or_init(Self::parse)
    }

    fn parse() -> Self {
        let parsed = jar::schema_texts().into_iter().filter_map(|text| {
            let json = serde_json::from_str(&without_comments(&text)).expect("a schema is JSON");
            message(&json)
        });
        Self(parsed.map(|message| (message.fields.name.clone(), message)).collect())
    }

    pub fn get(&self, name: &str) -> &Message {
        self.0.get(name).unwrap_or_else(|| panic!("the jar has no {name}"))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Message> {
        self.0.values()
    }
}

impl Message {
    pub fn is_flexible(&self, version: i16) -> bool {
        within(version, self.flexible)
    }
}

pub fn within(version: i16, versions: Versions) -> bool {
    (versions.0..=versions.1).contains(&version)
}

fn without_comments(text: &str) -> String {
    let mut plain = String::new();
    for line in text.lines() {
        let mut in_text = false;
        let mut end = line.len();
        for (at, byte) in line.bytes().enumerate() {
            in_text ^= byte == b'"';
            if !in_text && line[at..].starts_with("//") {
                end = at;
                break;
            }
        }
        plain.push_str(&line[..end]);
        plain.push('\n');
    }
    plain
}

fn versions(json: &Json) -> Versions {
    let text = json.as_str().unwrap_or("none");
    let number = |text: &str| text.parse().expect("a version");
    if text == "none" {
        (1, 0)
    } else if let Some(first) = text.strip_suffix('+') {
        (number(first), i16::MAX)
    } else if let Some((first, last)) = text.split_once('-') {
        (number(first), number(last))
    } else {
        (number(text), number(text))
    }
}

fn message(json: &Json) -> Option<Message> {
    if json["type"] != "request" && json["type"] != "response" {
        return None;
    }
    let common = json["commonStructs"].as_array().map_or(&[][..], Vec::as_slice);
    let listeners = json["listeners"].as_array().map_or(&[][..], Vec::as_slice);
    Some(Message {
        versions: versions(&json["validVersions"]),
        flexible: versions(&json["flexibleVersions"]),
        unstable: json["latestVersionUnstable"] == true,
        key: json["apiKey"].as_i64().map(|key| key as i16),
        for_brokers: listeners.iter().any(|listener| listener == "broker"),
        fields: structure(json, common),
    })
}

fn structure(json: &Json, common: &[Json]) -> Arc<Structure> {
    let name = json["name"].as_str().expect("a name").to_owned();
    Arc::new(Structure { name, fields: fields(json, common) })
}

fn fields(json: &Json, common: &[Json]) -> Vec<Field> {
    let fields = json["fields"].as_array().map_or(&[][..], Vec::as_slice);
    fields.iter().map(|json| field(json, common)).collect()
}

fn field(json: &Json, common: &[Json]) -> Field {
    let default = match &json["default"] {
        Json::Null => None,
        Json::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    Field {
        name: json["name"].as_str().expect("a name").to_owned(),
        kind: kind(json["type"].as_str().expect("a type"), json, common),
        versions: versions(&json["versions"]),
        nullable: versions(&json["nullableVersions"]),
        tag: json["tag"].as_u64().map(|tag| tag as u32),
        default,
    }
}

fn kind(name: &str, json: &Json, common: &[Json]) -> Kind {
    let integer = |bytes, signed| Kind::Integer { bytes, signed };
    match name {
        "bool" => Kind::Bool,
        "int8" => integer(1, true),
        "int16" => integer(2, true),
        "uint16" => integer(2, false),
        "int32" => integer(4, true),
        "int64" => integer(8, true),
        "float64" => Kind::Float,
        "string" => Kind::Text,
        "uuid" => Kind::Uuid,
        "bytes" => Kind::Bytes,
        "records" => Kind::Records,
        _ => match name.strip_prefix("[]") {
            Some(element) => Kind::List(Box::new(kind(element, json, common))),
            None if json["fields"].is_array() => {
                let fields = fields(json, common);
                Kind::Structure(Arc::new(Structure { name: name.to_owned(), fields }))
            }
            None => {
                let shared = common.iter().find(|shared| shared["name"] == name);
                Kind::Structure(structure(shared.expect("a common structure"), common))
            }
        },
    }
}
