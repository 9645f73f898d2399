//! The figures as SVG. [`bars`]: a bar for the median of each row, a thin line
//! to its 99th percentile, on one logarithmic scale. [`panels`]: curves of what
//! grows, with axes.

use serde_json::Value;
use std::fmt::Write as _;

const WIDTH: f64 = 960.0;
const LABELS: f64 = 470.0;
const ROW: f64 = 26.0;
/// The first rows are ours.
const OURS: usize = 4;

/// A chart of rows as [`crate::figures::Row::json`] writes them.
pub(crate) fn bars(title: &str, rows: &[Value]) -> String {
    let figure = |row: &Value, name: &str| row[name].as_f64().unwrap_or(f64::NAN) / 1000.0;
    let most = rows.iter().map(|row| figure(row, "p99_us")).fold(1.0, f64::max);
    let least = rows.iter().map(|row| figure(row, "p50_us")).fold(most, f64::min) / 2.0;
    // The figures stand behind the longest line.
    let room = WIDTH - LABELS - 145.0;
    let place = |ms: f64| LABELS + room * (ms / least).ln() / (most / least).ln();
    let height = ROW * (rows.len() as f64 + 2.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<title>{0}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"8\" y=\"18\" font-weight=\"bold\">{0}</text>\n",
        escaped(title)
    );
    for (at, row) in rows.iter().enumerate() {
        let top = ROW * (at as f64 + 1.2);
        let (p50, p99) = (figure(row, "p50_us"), figure(row, "p99_us"));
        let (bar, tail) = (place(p50), place(p99));
        let colour = if at < OURS { "#2b6cb0" } else { "#8a8f98" };
        let middle = top + ROW / 2.0;
        let name = escaped(row["name"].as_str().unwrap_or_default());
        let _ = write!(
            out,
            "<text x=\"8\" y=\"{0}\">{name}</text>\n\
             <rect x=\"{LABELS}\" y=\"{1}\" width=\"{2:.1}\" height=\"14\" fill=\"{colour}\"/>\n\
             <line x1=\"{bar:.1}\" x2=\"{tail:.1}\" y1=\"{middle}\" y2=\"{middle}\" stroke=\"#222\"/>\n\
             <text x=\"{3:.1}\" y=\"{0}\">{p50:.2} / {p99:.2} ms</text>\n",
            middle + 4.0,
            middle - 7.0,
            bar - LABELS,
            tail + 6.0,
        );
    }
    out + "</svg>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Two curves over the same places.
pub(crate) struct Panel {
    /// What the places are.
    pub(crate) x: String,
    /// What the values are, with their unit.
    pub(crate) y: String,
    /// How the values are placed.
    pub(crate) scale: Scale,
    /// One label a place, evenly apart.
    pub(crate) places: Vec<String>,
    /// The curves.
    pub(crate) series: [Series; 2],
}

/// One curve.
pub(crate) struct Series {
    /// For the legend.
    pub(crate) name: String,
    /// One a place.
    pub(crate) values: Vec<f64>,
}

/// How values are placed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Steps of one, two and five in each power of ten.
    Logarithmic,
    /// Even steps from nought.
    FromZero,
}

/// A panel with its labels, and the curves' place in it: left, top, width, height.
const PANEL: (f64, f64) = (480.0, 300.0);
const INSIDE: (f64, f64, f64, f64) = (58.0, 54.0, 404.0, 190.0);
/// Colours that carry on white and on near black; each panel brings its own ground.
const STYLE: &str = "<style>\
    .ground{fill:#fff}text{fill:#1f2328}.grid{stroke:#d0d7de}.a{stroke:#1f6feb}.b{stroke:#bc4c00}\
    .a,.b{fill:none;stroke-width:2}.at.a{fill:#1f6feb}.at.b{fill:#bc4c00}\
    @media(prefers-color-scheme:dark){.ground{fill:#0d1117}text{fill:#e6edf3}.grid{stroke:#3d444d}\
    .a{stroke:#58a6ff}.b{stroke:#f0883e}.at.a{fill:#58a6ff}.at.b{fill:#f0883e}}</style>\n";

/// Panels, two beside each other, under one title.
pub(crate) fn panels(title: &str, panels: &[Panel]) -> String {
    let height = 34.0 + PANEL.1 * panels.len().div_ceil(2) as f64;
    let width = PANEL.0 * 2.0;
    let title = escaped(title);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<title>{title}</title>\n{STYLE}\
         <rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n\
         <text x=\"16\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{title}</text>\n"
    );
    for (at, panel) in panels.iter().enumerate() {
        let (left, top) = (PANEL.0 * (at % 2) as f64, 34.0 + PANEL.1 * (at / 2) as f64);
        let _ = write!(out, "<g transform=\"translate({left} {top})\">\n{}</g>\n", inside(panel));
    }
    out + "</svg>\n"
}

fn inside(panel: &Panel) -> String {
    let (left, top, width, height) = INSIDE;
    let bottom = top + height;
    let ticks = ticks(panel);
    let (least, most) = (ticks[0], ticks[ticks.len() - 1]);
    let along = |at: usize| {
        left + 14.0 + (width - 28.0) * at as f64 / (panel.places.len().max(2) - 1) as f64
    };
    let up = |value: f64| {
        let share = match panel.scale {
            Scale::Logarithmic => (value / least).ln() / (most / least).ln(),
            Scale::FromZero => value / most,
        };
        bottom - height * share
    };
    let mut out = format!("<text x=\"{left}\" y=\"16\">{}</text>\n", escaped(&panel.y));
    let middle = left + width / 2.0;
    let _ = writeln!(
        out,
        "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
        bottom + 38.0,
        escaped(&panel.x)
    );
    for tick in &ticks {
        let y = up(*tick);
        let _ = writeln!(
            out,
            "<line class=\"grid\" x1=\"{left}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left + width,
            left - 8.0,
            y + 4.0,
            (tick * 1000.0).round() / 1000.0
        );
    }
    for (at, place) in panel.places.iter().enumerate() {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            along(at),
            bottom + 18.0,
            escaped(place)
        );
    }
    for (number, (series, class)) in panel.series.iter().zip(["a", "b"]).enumerate() {
        let legend = left + 200.0 * number as f64;
        let points = series.values.iter().enumerate();
        let points: Vec<_> = points.map(|(at, value)| (along(at), up(*value))).collect();
        let line: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            out,
            "<line class=\"{class}\" x1=\"{legend}\" x2=\"{0}\" y1=\"34\" y2=\"34\"/>\
             <text x=\"{1}\" y=\"38\">{2}</text>\n<polyline class=\"{class}\" points=\"{3}\"/>",
            legend + 18.0,
            legend + 24.0,
            escaped(&series.name),
            line.join(" ")
        );
        for (x, y) in points {
            let _ =
                writeln!(out, "<circle class=\"at {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>");
        }
    }
    out
}

/// Values beside the lines, from at or below the least to at or above the most.
fn ticks(panel: &Panel) -> Vec<f64> {
    let values = || panel.series.iter().flat_map(|series| series.values.iter().copied());
    let most = values().fold(0.0, f64::max).max(0.1);
    let least = values().filter(|value| *value > 0.0).fold(most, f64::min);
    let steps = |from: f64| {
        let power = 10f64.powf(from.log10().floor());
        (0..).flat_map(move |up| [1.0, 2.0, 5.0].map(|step| step * power * 10f64.powi(up)))
    };
    match panel.scale {
        Scale::Logarithmic => {
            let all: Vec<f64> = steps(least).take_while(|tick| *tick < most * 2.5).collect();
            let first = all.iter().rposition(|tick| *tick <= least).unwrap_or(0);
            let last = all.iter().position(|tick| *tick >= most).unwrap_or(all.len() - 1);
            all[first..=last.max(first + 1)].to_vec()
        }
        Scale::FromZero => {
            let step = steps(most / 10.0).find(|step| most / step <= 6.0).unwrap_or(most);
            (0..=(most / step).ceil() as usize).map(|number| number as f64 * step).collect()
        }
    }
}
