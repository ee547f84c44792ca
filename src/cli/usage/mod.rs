//! `aye usage`: reports tokens, cost, tasks and approvals by model, project or day.

pub(crate) mod args;

use crate::host::console::{print_json, print_text};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::usage_report::{self, UsageFilter, UsageGroup, UsageReport, UsageRow};
use crate::session::Totals;
use crate::text::width;
use crate::transfer::format::{dollars, one_line};
use args::UsageRequest;
use serde::Serialize;
use std::fmt::Write as _;

/// JSON output of `aye usage`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportJson {
    /// Start of the reported period, or `null` if it has no start.
    since: Option<jiff::Timestamp>,
    by: &'static str,
    rows: Vec<RowJson>,
    total: RowJson,
    /// Sessions that could not be read and are therefore not included.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable_sessions: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RowJson {
    name: String,
    tasks: u64,
    requests: u64,
    input_tokens: u64,
    cache_read_tokens: u64,
    output_tokens: u64,
    /// Cost in US dollars, or `null` if no price is known.
    cost_usd: Option<f64>,
    /// Whether every price is known.
    cost_is_complete: bool,
    estimated: bool,
    approved: u64,
    denied: u64,
}

pub(crate) fn run(app: &AppContext, request: &UsageRequest) -> Result<Exit, CliError> {
    let since = request.period.start(jiff::Timestamp::now());
    let filter = UsageFilter { since, workspace: request.this_project.then(|| app.workspace_id()), by: request.by };
    let report = usage_report::read(&usage_report::sources(app)?, &filter)?;
    if request.json {
        print_json(&json(&report, &filter));
    } else {
        print_text(&crate::text::reveal(&text(&report, request.by)));
    }
    Ok(Exit::Completed)
}

fn json(report: &UsageReport, filter: &UsageFilter) -> ReportJson {
    ReportJson {
        since: filter.since,
        by: filter.by.as_str(),
        rows: report.rows.iter().map(|(name, row)| row_json(name, row)).collect(),
        total: row_json("total", &report.total()),
        unreadable_sessions: report.unreadable_sessions.clone(),
    }
}

fn row_json(name: &str, row: &UsageRow) -> RowJson {
    let spent = row.totals.as_expense();
    RowJson {
        name: name.to_owned(),
        tasks: row.tasks,
        requests: row.requests,
        input_tokens: spent.usage.input_tokens,
        cache_read_tokens: spent.usage.cache_read_tokens,
        output_tokens: spent.usage.output_tokens,
        cost_usd: spent.cost_usd,
        cost_is_complete: is_complete(&row.totals),
        estimated: spent.estimated,
        approved: row.approved,
        denied: row.denied,
    }
}

/// Returns whether the price of every request is known.
fn is_complete(totals: &Totals) -> bool {
    totals.tokens() == 0 || totals.whole_cost_usd().is_some()
}

fn text(report: &UsageReport, by: UsageGroup) -> String {
    if report.rows.is_empty() {
        return "no usage in this period\n".to_owned();
    }
    let header = [by.as_str(), "tasks", "requests", "input", "cached", "output", "cost", "approved", "denied"];
    let mut table = vec![header.map(str::to_owned)];
    table.extend(report.rows.iter().map(|(name, row)| cells(&one_line(name), row)));
    if report.rows.len() > 1 {
        table.push(cells("total", &report.total()));
    }
    let widths: [usize; 9] = std::array::from_fn(|column| table.iter().map(|row| width(&row[column])).max().unwrap_or(0));
    let mut text = String::new();
    for row in &table {
        for (column, cell) in row.iter().enumerate() {
            let padding = " ".repeat(widths[column] - width(cell));
            let _ = if column == 0 { write!(text, "{cell}{padding}") } else { write!(text, "  {padding}{cell}") };
        }
        text.push('\n');
    }
    let rows = || report.rows.iter().map(|(_, row)| &row.totals);
    let notes = [
        (rows().any(|totals| !is_complete(totals)), "The cost excludes requests whose price was unknown (+).\n"),
        (rows().any(|totals| totals.estimated), "The cost is estimated where a provider did not report all of the usage (~).\n"),
    ];
    if notes.iter().any(|(applies, _)| *applies) {
        text.push('\n');
    }
    text.extend(notes.iter().filter(|(applies, _)| *applies).map(|(_, note)| *note));
    for id in &report.unreadable_sessions {
        let _ = writeln!(text, "not counted: session {} cannot be read", one_line(id));
    }
    text
}

fn cells(name: &str, row: &UsageRow) -> [String; 9] {
    let spent = row.totals.as_expense();
    let more = if is_complete(&row.totals) { "" } else { "+" };
    [
        name.to_owned(),
        row.tasks.to_string(),
        row.requests.to_string(),
        spent.usage.input_tokens.to_string(),
        spent.usage.cache_read_tokens.to_string(),
        spent.usage.output_tokens.to_string(),
        format!("{}{more}", dollars(spent.cost_usd.unwrap_or_default(), spent.estimated)),
        row.approved.to_string(),
        row.denied.to_string(),
    ]
}
