//! `coretide bench report`: percentile curves of several runs in one page that needs nothing else.
//!
//! Both axes are logarithmic: the horizontal one in 1/(1-percentile), so that each step to the
//! right is one more nine; the vertical one in milliseconds. A curve ends where its run has no
//! more values to tell percentiles apart.

use std::fmt::Write;
use std::fs;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::hgrm::{self, Point};
use crate::options::ReportArgs;

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub name: String,
    pub points: Vec<Point>,
    /// Values that it is about, if known.
    pub count: Option<u64>,
}

impl Series {
    /// The last quantile that its values tell from the maximum.
    fn last_quantile(&self) -> f64 {
        let max = self.points.last().map_or(0.0, |point| point.1);
        let reached = || self.points.iter().find(|point| point.1 >= max);
        let counted = self.count.map(|count| 1.0 - 1.0 / count.max(2) as f64);
        counted.or(reached().map(|point| point.0)).unwrap_or(0.0)
    }

    /// What is drawn: up to there, where the maximum is.
    fn drawn(&self) -> impl Iterator<Item = Point> {
        let last = self.last_quantile();
        let inner = self.points.iter().copied().filter(move |point| point.0 < last);
        let end = self.points.last().map(|point| (last, point.1));
        inner.chain(end).filter(|point| point.1 > 0.0)
    }
}

pub fn report(args: &ReportArgs) -> anyhow::Result<()> {
    let mut series = Vec::new();
    for file in &args.files {
        series.extend(load(file)?);
    }
    let drawing = draw(&args.title, &series)?;
    let bare = args.out.extension().is_some_and(|extension| extension == "svg");
    let text = if bare { drawing } else { page(&args.title, &series, &drawing)? };
    fs::write(&args.out, text).with_context(|| args.out.display().to_string())?;
    println!("{}", args.out.display());
    Ok(())
}

/// The curves of a file, given as `FILE` or `NAME=FILE`.
pub fn load(argument: &str) -> anyhow::Result<Vec<Series>> {
    let (name, path) = match argument.split_once('=') {
        Some((name, path)) => (name.to_owned(), path),
        None => {
            let stem = std::path::Path::new(argument).file_stem().unwrap_or_default();
            (stem.to_string_lossy().into_owned(), argument)
        }
    };
    let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
    if !text.trim_start().starts_with('{') {
        let points = hgrm::read(&text).with_context(|| path.to_owned())?;
        return Ok(vec![Series { name, points, count: hgrm::count(&text) }]);
    }
    let run: Value = serde_json::from_str(&text).with_context(|| path.to_owned())?;
    let Some(latencies) = run["latency_ms"].as_object() else {
        bail!("{path}: no latencies in it");
    };
    let of_interest = latencies.iter().filter(|(key, _)| *key != "sent late by");
    let several = of_interest.clone().count() > 1;
    let mut series = Vec::new();
    for (key, latency) in of_interest {
        let points = serde_json::from_value(latency["curve"].clone());
        let points = points.with_context(|| format!("{path}: {key}"))?;
        let name = if several { format!("{name}, {key}") } else { name.clone() };
        series.push(Series { name, points, count: latency["count"].as_u64() });
    }
    Ok(series)
}

/// Where things go on the canvas.
struct Frame {
    nines: f64,
    low: f64,
    high: f64,
}

impl Frame {
    fn around(series: &[Series]) -> anyhow::Result<Frame> {
        let points = || series.iter().flat_map(Series::drawn);
        if points().next().is_none() {
            bail!("nothing to draw");
        }
        let low = points().map(|p| p.1).fold(f64::INFINITY, f64::min);
        let high = points().map(|p| p.1).fold(0.0, f64::max);
        Ok(Frame {
            nines: points().map(|p| nines(p.0)).fold(2.0, f64::max).min(NINES_MAX),
            low: low.log10().floor(),
            high: high.log10().ceil().max(low.log10().floor() + 1.0),
        })
    }

    fn x(&self, quantile: f64) -> f64 {
        let share = (nines(quantile) / self.nines).min(1.0);
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, millis: f64) -> f64 {
        let share = (millis.log10() - self.low) / (self.high - self.low);
        HEIGHT - BOTTOM - share.clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM)
    }
}

/// 0.9 has one, 0.99 has two.
fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).max(1e-12).log10()
}

/// The drawing as SVG.
pub fn draw(title: &str, series: &[Series]) -> anyhow::Result<String> {
    let frame = Frame::around(series)?;
    let mut out = String::new();
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\">"
    )?;
    writeln!(out, "<title>{}</title>", escape(title))?;
    writeln!(out, "<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>")?;
    writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"24\" font-size=\"16\" font-weight=\"600\" \
         fill=\"#1f2328\">{}</text>",
        escape(title)
    )?;
    grid(&mut out, &frame)?;
    for (index, series) in series.iter().enumerate() {
        curve(&mut out, &frame, series, index)?;
    }
    legend(&mut out, series)?;
    out.push_str("</svg>\n");
    Ok(out)
}

fn grid(out: &mut String, frame: &Frame) -> anyhow::Result<()> {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let mut decade = frame.low;
    while decade <= frame.high {
        for step in 1..10 {
            let millis = 10f64.powf(decade) * f64::from(step);
            if millis.log10() > frame.high + 1e-9 {
                break;
            }
            let (y, color) = (frame.y(millis), if step == 1 { "#d0d7de" } else { "#f0f2f5" });
            writeln!(
                out,
                "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" \
                 stroke=\"{color}\"/>"
            )?;
            if step == 1 {
                let (x, label) = (LEFT - 8.0, label(millis));
                writeln!(
                    out,
                    "<text x=\"{x}\" y=\"{:.1}\" text-anchor=\"end\" \
                     fill=\"#57606a\">{label}</text>",
                    y + 4.0
                )?;
            }
        }
        decade += 1.0;
    }
    for (quantile, name) in MARKS {
        if nines(*quantile) > frame.nines + 1e-9 {
            break;
        }
        let x = frame.x(*quantile);
        writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#d0d7de\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#57606a\">{name}</text>",
            bottom + 18.0
        )?;
    }
    let (middle, height) = ((LEFT + right) / 2.0, (TOP + bottom) / 2.0);
    writeln!(
        out,
        "<text x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\" \
         fill=\"#1f2328\">percentile</text>\
         <text transform=\"translate(18 {height}) rotate(-90)\" text-anchor=\"middle\" \
         fill=\"#1f2328\">latency</text>",
        bottom + 38.0
    )?;
    Ok(())
}

fn curve(out: &mut String, frame: &Frame, series: &Series, index: usize) -> anyhow::Result<()> {
    let color = COLORS[index % COLORS.len()];
    let mut path = String::new();
    for (quantile, millis) in series.drawn() {
        let command = if path.is_empty() { 'M' } else { 'L' };
        write!(path, "{command}{:.1} {:.1} ", frame.x(quantile), frame.y(millis))?;
    }
    let dash = if index >= COLORS.len() { " stroke-dasharray=\"6 4\"" } else { "" };
    writeln!(
        out,
        "<path d=\"{path}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"{dash}>\
         <title>{}</title></path>",
        escape(&series.name)
    )?;
    Ok(())
}

fn legend(out: &mut String, series: &[Series]) -> anyhow::Result<()> {
    let count = series.len();
    for (index, series) in series.iter().enumerate() {
        // At the lower right, where curves that rise leave room.
        let y = HEIGHT - BOTTOM - 16.0 - 20.0 * (count - 1 - index) as f64;
        let (x, color) = (WIDTH - RIGHT - 40.0, COLORS[index % COLORS.len()]);
        let dash = if index >= COLORS.len() { " stroke-dasharray=\"6 4\"" } else { "" };
        writeln!(
            out,
            "<line x1=\"{x}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"{color}\" \
             stroke-width=\"3\"{dash}/><text x=\"{}\" y=\"{}\" text-anchor=\"end\" \
             fill=\"#1f2328\">{}</text>",
            x + 24.0,
            x - 8.0,
            y + 4.0,
            escape(&series.name)
        )?;
    }
    Ok(())
}

fn page(title: &str, series: &[Series], drawing: &str) -> anyhow::Result<String> {
    let mut rows = String::new();
    for series in series {
        write!(rows, "<tr><th>{}</th>", escape(&series.name))?;
        for (quantile, _) in MARKS {
            // Fewer values than it takes to tell this one from the maximum.
            let is_known = *quantile <= series.last_quantile();
            let value = is_known.then(|| label(at(&series.points, *quantile)));
            write!(rows, "<td>{}</td>", value.unwrap_or_else(|| "–".to_owned()))?;
        }
        let max = series.points.iter().map(|p| p.1).fold(0.0, f64::max);
        let count = series.count.map_or_else(|| "–".to_owned(), |count| count.to_string());
        writeln!(rows, "<td>{}</td><td>{count}</td></tr>", label(max))?;
    }
    let head = |(quantile, name): &(f64, &str)| match quantile {
        0.0 => "<th>min</th>".to_owned(),
        _ => format!("<th>p{name}</th>"),
    };
    let heads: String = MARKS.iter().map(head).collect();
    let title = escape(title);
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\n\
         <style>body{{font-family:system-ui,sans-serif;margin:2rem;color:#1f2328}}\
         svg{{max-width:100%;height:auto}}table{{border-collapse:collapse;margin-top:1rem}}\
         th,td{{padding:.3rem .8rem;text-align:right;border-bottom:1px solid #d0d7de}}\
         th:first-child{{text-align:left}}</style>\n{drawing}\
         <table><tr><th>run</th>{heads}<th>max</th><th>values</th></tr>\n{rows}</table>\n\
         <p>Both axes are logarithmic. A curve ends where its run has too few values to tell \
         higher percentiles from the maximum.</p></html>\n"
    ))
}

/// The latency at a quantile: of the first point that reaches it.
fn at(points: &[Point], quantile: f64) -> f64 {
    let reached = points.iter().find(|point| point.0 >= quantile);
    reached.or(points.last()).map_or(0.0, |point| point.1)
}

fn label(millis: f64) -> String {
    match millis {
        m if m >= 1000.0 => format!("{} s", short(m / 1000.0)),
        m if m >= 1.0 => format!("{} ms", short(m)),
        m => format!("{} µs", short(m * 1000.0)),
    }
}

fn short(value: f64) -> String {
    let text = if value < 10.0 { format!("{value:.2}") } else { format!("{value:.1}") };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 540.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 56.0;
/// Beyond that a curve is drawn at the right edge.
const NINES_MAX: f64 = 6.0;
const MARKS: &[(f64, &str)] = &[
    (0.0, "0"),
    (0.5, "50"),
    (0.9, "90"),
    (0.99, "99"),
    (0.999, "99.9"),
    (0.9999, "99.99"),
    (0.99999, "99.999"),
];
/// Told apart by people who see few colors too.
const COLORS: &[&str] =
    &["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"];
