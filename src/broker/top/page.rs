//! A page of metrics as a scrape gives it.

use std::collections::BTreeMap;

/// Samples by the name of their series.
#[derive(Clone, Debug, Default)]
pub struct Page {
    samples: BTreeMap<String, Vec<Sample>>,
}

#[derive(Clone, Debug)]
struct Sample {
    labels: Vec<(String, String)>,
    value: f64,
}

/// A line that is none of the format.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of the metrics is unreadable: {text}")]
pub struct PageError {
    line: usize,
    text: String,
}

impl Page {
    pub fn parse(text: &str) -> Result<Page, PageError> {
        let mut page = Page::default();
        for (place, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, sample) = parse_line(line)
                .ok_or_else(|| PageError { line: place + 1, text: line.to_owned() })?;
            page.samples.entry(name).or_default().push(sample);
        }
        Ok(page)
    }

    /// The sum of all series of a name that have these labels, whatever others they have.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.matching(name, labels).map(|it| it.value).fold(0.0, |sum, it| sum + it)
    }

    /// The largest of them; none when there is none.
    pub fn max(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.matching(name, labels).map(|it| it.value).reduce(f64::max)
    }

    /// Values of a label of a name, in order.
    pub fn values(&self, name: &str, label: &str) -> Vec<String> {
        let samples = self.samples.get(name).into_iter().flatten();
        let mut values: Vec<String> =
            samples.filter_map(|it| it.label(label).map(str::to_owned)).collect();
        values.sort_by(|a, b| natural(a).cmp(&natural(b)));
        values.dedup();
        values
    }

    /// For every series with these labels, the values of `wanted` and its own.
    pub fn rows<const N: usize>(
        &self,
        name: &str,
        labels: &[(&str, &str)],
        wanted: [&str; N],
    ) -> Vec<([String; N], f64)> {
        let row = |it: &Sample| {
            (wanted.map(|key| it.label(key).unwrap_or_default().to_owned()), it.value)
        };
        self.matching(name, labels).map(row).collect()
    }

    fn matching<'a>(
        &'a self,
        name: &str,
        labels: &'a [(&'a str, &'a str)],
    ) -> impl Iterator<Item = &'a Sample> {
        let samples = self.samples.get(name).into_iter().flatten();
        samples.filter(|it| labels.iter().all(|(key, value)| it.label(key) == Some(value)))
    }
}

impl Sample {
    fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

/// Numbers in the order of their size, before everything else.
fn natural(text: &str) -> (u64, &str) {
    (text.parse().unwrap_or(u64::MAX), text)
}

fn parse_line(line: &str) -> Option<(String, Sample)> {
    let end_of_name = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end_of_name);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (key, behind) = rest.trim_start_matches(',').split_once("=\"")?;
            let (value, behind) = take_value(behind)?;
            labels.push((key.to_owned(), value));
            rest = behind;
        }
        rest = &rest[1..];
    }
    let value = rest.split_whitespace().next()?;
    Some((name.to_owned(), Sample { labels, value: value.parse().ok()? }))
}

/// Up to the quote that ends the value; gives what stands behind it.
fn take_value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}
