//! Against the schemas in Kafka's client jar, read by an interpreter that shares no code with ours.

use bytes::Bytes;

use crate::cases::{self, Side};
use crate::for_every_message;
use crate::schema::{Message, Schemas, Versions};
use crate::value::{self, Form};

/// APIs of brokers that are left out: changes of the voters of Kafka's own Raft.
const LEFT_OUT: &[&str] = &["AddRaftVoterRequest", "RemoveRaftVoterRequest"];

fn form(schema: &Message, version: i16) -> Form {
    let flexible = schema.is_flexible(version);
    Form { version, flexible, unknown_tags: false, odd_nulls: false }
}

/// The versions of an API that are not in flux; only the schema of the request says.
fn stable(schemas: &Schemas, name: &str) -> Versions {
    let request = schemas.get(&name.replace("Response", "Request"));
    let (first, last) = request.versions;
    (first, if request.unstable { last - 1 } else { last })
}

#[test]
fn the_version_table_says_what_the_schemas_say() {
    let schemas = Schemas::of_jar();
    let cases = cases::all();
    for case in &cases {
        let schema = schemas.get(case.name);
        let request = schemas.get(&case.name.replace("Response", "Request"));
        let spec = case.key.spec();
        assert_eq!(request.key, Some(case.key.number()), "{}", case.name);
        let versions = (case.versions.min, case.versions.max);
        assert_eq!(versions, stable(schemas, case.name), "{}", case.name);
        assert_eq!(case.versions, spec.served, "{}", case.name);
        for version in case.versions.iter() {
            let flexible = schema.is_flexible(version);
            assert_eq!(spec.is_flexible(version), flexible, "{} {version}", case.name);
        }
    }
    let ours: Vec<_> = cases.iter().filter(|case| case.side == Side::Request).collect();
    let listed: Vec<_> = ours.iter().map(|case| case.key).collect();
    assert_eq!(listed, protocol::versions::all(), "every API of the table is tested here");
    for schema in schemas.iter().filter(|schema| schema.for_brokers) {
        let name = schema.fields.name.as_str();
        let known = ours.iter().any(|case| case.name == name);
        assert!(known != LEFT_OUT.contains(&name), "{name}");
    }
}

#[test]
fn what_kafka_writes_is_read_field_by_field_and_written_the_same() {
    for_every_message(128, |case, version, schemas, entropy| {
        let schema = schemas.get(case.name);
        let value = value::random(&schema.fields, version, entropy);
        let mut bytes = Vec::new();
        value::encode(&value, &schema.fields, form(schema, version), &mut bytes);
        let decoded = (case.decode)(bytes.clone().into(), version)
            .unwrap_or_else(|error| panic!("{} {version}: {error}\n{value:?}", case.name));
        assert_eq!(decoded.remaining, 0, "{} {version}", case.name);
        let shown = value::shown(&value, &schema.fields, case.name, stable(schemas, case.name));
        assert_eq!(decoded.shown, shown, "{} {version}", case.name);
        assert_eq!(decoded.encoded, bytes, "{} {version}\n{shown}", case.name);
    });
}

#[test]
fn a_message_nobody_has_touched_is_kafkas() {
    let schemas = Schemas::of_jar();
    for case in cases::all() {
        let schema = schemas.get(case.name);
        for version in case.versions.iter() {
            let value = value::defaults(&schema.fields);
            let mut bytes = Vec::new();
            value::encode(&value, &schema.fields, form(schema, version), &mut bytes);
            assert_eq!((case.encode_default)(version), bytes, "{} {version}", case.name);
        }
    }
}

#[test]
fn unknown_tags_odd_nulls_and_a_tail_are_served() {
    for_every_message(32, |case, version, schemas, entropy| {
        let schema = schemas.get(case.name);
        let value = value::random(&schema.fields, version, entropy);
        let plain = form(schema, version);
        let (mut bytes, mut odd) = (Vec::new(), Vec::new());
        value::encode(&value, &schema.fields, plain, &mut bytes);
        let odd_form = Form { unknown_tags: true, odd_nulls: true, ..plain };
        value::encode(&value, &schema.fields, odd_form, &mut odd);
        odd.extend(b"tail");
        let decoded = (case.decode)(Bytes::from(odd), version)
            .unwrap_or_else(|error| panic!("{} {version}: {error}\n{value:?}", case.name));
        assert_eq!((decoded.remaining, &decoded.encoded[..]), (4, &bytes[..]), "{}", case.name);
    });
}
