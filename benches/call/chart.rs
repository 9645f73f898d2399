//! The figures as one SVG: a bar for the median of each row, a thin line to its
//! 99th percentile, on one logarithmic scale.

use serde_json::Value;
use std::fmt::Write as _;

const WIDTH: f64 = 960.0;
const LABELS: f64 = 470.0;
const ROW: f64 = 26.0;

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
        let colour = if at < 3 { "#2b6cb0" } else { "#8a8f98" };
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
