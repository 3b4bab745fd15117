//! The picture of a view: lines of text, none longer than there are columns, no more than there
//! are rows. Cores come first, then what is furthest behind, then the busiest topics.

use super::view::{Core, Group, Health, Topic, View};

/// Lines for a terminal of so many columns and rows; what does not fit is counted.
pub fn draw(view: &View, title: &str, columns: usize, rows: usize) -> Vec<String> {
    let mut lines = vec![title.to_owned(), health(&view.health), String::new()];
    let fixed = lines.len() + SECTION_LINES * 3;
    let free = rows.saturating_sub(fixed);
    let cores = view.cores.len().min((free / 3).max(2));
    let left = free.saturating_sub(cores);
    let groups = groups(view);
    let topic_lines = view.topics.len().min((left / 3).max(left.saturating_sub(groups.len())));
    let group_lines = groups.len().min(left.saturating_sub(topic_lines));
    section(&mut lines, row(CORE_WIDTHS, CORE_HEADINGS), view.cores.iter().map(core), cores);
    section(&mut lines, row(GROUP_WIDTHS, GROUP_HEADINGS), groups.into_iter(), group_lines);
    section(
        &mut lines,
        row(TOPIC_WIDTHS, TOPIC_HEADINGS),
        view.topics.iter().map(topic),
        topic_lines,
    );
    lines.truncate(rows);
    lines.iter().map(|line| cut(line.trim_end(), columns)).collect()
}

/// A heading, some lines, and how many more there are, or an empty line.
fn section(
    lines: &mut Vec<String>,
    heading: String,
    all: impl ExactSizeIterator<Item = String>,
    shown: usize,
) {
    let hidden = all.len().saturating_sub(shown);
    lines.push(heading);
    lines.extend(all.take(shown));
    lines.push(if hidden > 0 { format!("  ({hidden} more)") } else { String::new() });
}

fn health(it: &Health) -> String {
    format!(
        "offline {}  under-replicated {}  under-min-isr {}  connections {}  memory {}",
        it.offline,
        it.under_replicated,
        it.under_min_isr,
        it.connections,
        bytes(it.memory_bytes)
    )
}

fn core(it: &Core) -> String {
    let part = |it: f64| format!("{:.0}%", it * 100.0);
    let [produce, fetch, commit, delay] = [it.produce, it.fetch, it.commit, it.delay].map(time);
    let (received, sent) = (bytes(it.bytes_in), bytes(it.bytes_out));
    let (busy, memory, requests) = (part(it.busy), part(it.memory), count(it.requests));
    let name = &it.name;
    row(
        CORE_WIDTHS,
        [name, &busy, &memory, &requests, &received, &sent, &produce, &fetch, &commit, &delay],
    )
}

fn topic(it: &Topic) -> String {
    let [records_in, records_out] = [it.records_in, it.records_out].map(count);
    let [bytes_in, bytes_out] = [it.bytes_in, it.bytes_out].map(bytes);
    row(TOPIC_WIDTHS, [&it.name, &records_in, &bytes_in, &records_out, &bytes_out])
}

/// Cells under their headings: those of negative width begin at the left, and are cut to it.
fn row<const N: usize>(widths: [isize; N], cells: [&str; N]) -> String {
    let cell = |(width, text): (isize, &str)| {
        let columns = width.unsigned_abs();
        match width {
            ..0 => format!("{:<columns$}", cut(text, columns)),
            _ => format!("{text:>columns$}"),
        }
    };
    widths.into_iter().zip(cells).map(cell).collect::<Vec<_>>().join(" ")
}

/// Each group with what has to be said about it below.
fn groups(view: &View) -> Vec<String> {
    let mut lines = Vec::new();
    for it in &view.groups {
        lines.push(group(it));
        lines.extend(it.why_idle().map(|why| format!("  {why}")));
        if !it.lagging.is_empty() {
            lines.push(lagging(it));
        }
    }
    lines
}

fn group(it: &Group) -> String {
    let sign = if it.growth > 0.0 { "+" } else { "" };
    let growth = format!("{sign}{}", count(it.growth));
    let [members, idle, partitions] = [it.members, it.idle, it.partitions].map(count);
    let (lag, age) = (count(it.lag_records), age(it.lag_seconds));
    let (name, state) = (&it.name, &it.state);
    row(GROUP_WIDTHS, [name, state, &members, &idle, &partitions, &lag, &age, &growth])
}

/// The partitions that lag most, in one line.
fn lagging(it: &Group) -> String {
    let each = it.lagging.iter().take(LAGGING_SHOWN).map(|it| {
        let seconds = it.seconds.map_or("?".to_owned(), age);
        format!("{}-{} {} ({seconds})", it.topic, it.partition, count(it.records))
    });
    let shown: Vec<String> = each.collect();
    let hidden = it.lagging.len() - shown.len();
    let more = if hidden > 0 { format!(", {hidden} more") } else { String::new() };
    format!("  behind: {}{more}", shown.join(", "))
}

/// With a letter for thousands, millions and so on.
fn count(number: f64) -> String {
    scaled(number, 1000.0, &["", "k", "M", "G", "T"])
}

fn bytes(number: f64) -> String {
    scaled(number, 1024.0, &["B", "K", "M", "G", "T"])
}

fn scaled(number: f64, step: f64, units: &[&str]) -> String {
    let (mut value, mut unit) = (number, 0);
    while value.abs() >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    match unit {
        0 => format!("{value:.0}{}", units[0]),
        _ => format!("{value:.1}{}", units[unit]),
    }
}

fn time(seconds: Option<f64>) -> String {
    match seconds {
        None => "-".to_owned(),
        Some(it) if it < 1e-3 => format!("{:.0}us", it * 1e6),
        Some(it) if it < 1.0 => format!("{:.1}ms", it * 1e3),
        Some(it) => format!("{it:.1}s"),
    }
}

fn age(seconds: f64) -> String {
    match seconds {
        it if it < 10.0 => format!("{it:.1}s"),
        it if it < 600.0 => format!("{it:.0}s"),
        it if it < 36_000.0 => format!("{:.0}m", it / 60.0),
        it if it < 864_000.0 => format!("{:.0}h", it / 3600.0),
        it => format!("{:.0}d", it / 86_400.0),
    }
}

fn cut(text: &str, columns: usize) -> String {
    match text.chars().count() > columns {
        true => text.chars().take(columns.saturating_sub(1)).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

const CORE_WIDTHS: [isize; 10] = [-4, 5, 5, 8, 8, 8, 8, 8, 8, 8];
const CORE_HEADINGS: [&str; 10] =
    ["CORE", "BUSY", "MEM", "REQ/S", "IN/S", "OUT/S", "PROD99", "FETCH99", "COMMIT99", "DELAY99"];
const GROUP_WIDTHS: [isize; 8] = [-22, -19, 3, 4, 5, 8, 5, 7];
const GROUP_HEADINGS: [&str; 8] =
    ["GROUP", "STATE", "MEM", "IDLE", "PARTS", "LAG", "AGE", "GROW/S"];
const TOPIC_WIDTHS: [isize; 5] = [-35, 10, 10, 10, 10];
const TOPIC_HEADINGS: [&str; 5] = ["TOPIC", "RECS IN/S", "IN/S", "RECS OUT/S", "OUT/S"];
/// A heading and an empty line.
const SECTION_LINES: usize = 2;
const LAGGING_SHOWN: usize = 3;
