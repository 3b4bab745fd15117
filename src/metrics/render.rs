//! Snapshots as text.

use crate::snapshot::{Snapshot, Value};
use crate::text::Text;

/// The content type under which the text is served.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The text of all families, ordered by name.
pub fn render(snapshot: &Snapshot) -> String {
    let mut text = Text::default();
    write(&mut text, snapshot);
    text.into_string()
}

/// Adds all families of a snapshot, ordered by name.
pub fn write(text: &mut Text, snapshot: &Snapshot) {
    for (name, family) in snapshot.families() {
        let mut out = text.family(name, family.kind, family.help);
        for sample in &family.samples {
            let labels = sample.labels.iter().map(|(key, text)| (*key, text.as_str()));
            match &sample.value {
                Value::Integer(value) => out.integer(labels, *value),
                Value::Float(value) => out.float(labels, *value),
                Value::Distribution { cumulative, count, sum_seconds } => {
                    out.distribution(labels, cumulative, *count, *sum_seconds);
                }
            }
        }
    }
}
