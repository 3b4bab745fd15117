//! Snapshots as text.

use crate::snapshot::Snapshot;
use crate::text::Text;

/// The content type under which the text is served.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The text of all families, ordered by name.
pub fn render(snapshot: &Snapshot) -> String {
    let mut text = Text::default();
    for (name, family) in snapshot.families() {
        let mut out = text.family(name, family.kind, family.help);
        for sample in &family.samples {
            out.sample(sample);
        }
    }
    text.into_pieces().concat()
}
