//! `docs/configs.md` says what becomes of every key, and says nothing else.

use std::fmt::Write;
use std::path::PathBuf;

use metadata::configs::{ConfigKey, Effect, Family};

const HEAD: &str = "\
# What becomes of Kafka's configuration keys

Written from the tables in `src/metadata/configs` by their tests; to write it again, run
`CORETIDE_WRITE_DOCS=1 cargo test -p metadata config_docs`.

- **honoured**: as in Kafka.
- **nothing**: accepted with a warning, changes nothing, for the reason given.
- **refused**: only the default is accepted, for the reason given.

One default differs from Kafka's: `flush.messages` (`log.flush.interval.messages`) is 1, so that
every acknowledged write is on stable storage.

What is set at run time, for one node or for all, outranks what flags, environment and file say,
and outlasts a start. A start warns where they differ. `min.insync.replicas` is always of that
kind: what the cluster's first start was given becomes the value of the whole cluster (as in
Kafka with eligible leader replicas), and later starts are warned when they are given another.
";

fn table(out: &mut String, title: &str, keys: impl Iterator<Item = &'static ConfigKey>) {
    let _ = writeln!(out, "\n## {title}\n\n| key | default | here |\n|---|---|---|");
    let mut keys: Vec<_> = keys.collect();
    keys.sort_by_key(|key| key.name);
    for key in keys {
        let default = match key.default {
            None => "null".to_owned(),
            Some("") => "empty".to_owned(),
            Some(text) => format!("`{text}`"),
        };
        let effect = match key.effect {
            Effect::Honoured => "honoured".to_owned(),
            Effect::Inert(reason) => format!("nothing: {reason}"),
            Effect::Refused(reason) => format!("refused: {reason}"),
        };
        let _ = writeln!(out, "| `{}` | {default} | {effect} |", key.name);
    }
}

#[test]
fn the_page_about_configs_is_true() {
    let mut page = HEAD.to_owned();
    table(&mut page, "Topics", Family::Topic.keys());
    table(&mut page, "Brokers", Family::Broker.keys());
    table(&mut page, "Groups", Family::Group.keys());
    table(&mut page, "Client metrics", Family::ClientMetrics.keys());
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/configs.md");
    if std::env::var_os("CORETIDE_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written == page, "docs/configs.md is out of date: see its head");
}
