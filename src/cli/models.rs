//! `aye models`: lists models with their context windows and prices.

pub(crate) mod update;

use crate::host::console::{print_json, print_text, warn, warn_all};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::models::ModelCatalog;
use crate::host::startup::runtime;
use crate::llm::similar_name;
use crate::ports::Models;
use crate::protocol::{ListedModel, Problem};
use crate::text::{clean, width};
use serde::Serialize;
use std::fmt::Write as _;

#[derive(Serialize)]
struct Answer {
    /// Date of the model catalogue, and the URL it was downloaded from.
    catalogue: State,
    models: Vec<ListedModel>,
    notices: Vec<String>,
}

#[derive(Serialize)]
struct State {
    date: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
}

pub(crate) fn run(app: &AppContext, ask: bool, json: bool, filter: Option<&str>) -> Result<Exit, CliError> {
    let here = ModelCatalog::new(app);
    // The models are listed even if the policy is invalid. `aye policy validate` reports its errors.
    let here = match app.policy(None, None) {
        Ok(policy) => here.with_policy(&policy),
        Err(_) => here,
    };
    let (date, origin) = {
        let catalogue = here.catalogue()?;
        let (date, origin) = catalogue.state();
        (date.map(|date| date.to_string()), origin.map(str::to_owned))
    };
    let (mut models, notices) = runtime()?.block_on(here.list(ask));
    let similar = filter.and_then(|filter| similar_name(models.iter().map(|model| model.facts.name.as_str()), filter));
    let similar = similar.map(str::to_owned);
    if let Some(filter) = filter.map(str::to_ascii_lowercase) {
        models.retain(|model| model.facts.name.to_ascii_lowercase().contains(&filter));
    }
    if json {
        print_json(&Answer { catalogue: State { date, origin }, models, notices });
        return Ok(Exit::Completed);
    }
    warn_all(&notices);
    if models.is_empty() {
        let problem =
            Problem::new(filter.map_or_else(|| "no models".to_owned(), |filter| format!("no model matches `{filter}`")));
        let problem = similar.into_iter().fold(problem, |problem, name| problem.hint(format!("did you mean `{name}`?")));
        warn(problem.hint("run `aye models --ask` to query the providers and local model servers too"));
        return Ok(Exit::Completed);
    }
    print_text(&table(&models));
    let from = origin.map_or_else(|| "built in".to_owned(), |origin| format!("from {}", clean(&origin)));
    print_text(&format!("\ncatalogue dated {}, {from}; --json shows the source of each entry\n", date.unwrap_or_default()));
    Ok(Exit::Completed)
}

fn table(models: &[ListedModel]) -> String {
    let head = ["model", "window", "output", "$/M in", "$/M out", "supports", ""].map(str::to_owned);
    let rows: Vec<[String; 7]> = std::iter::once(head).chain(models.iter().map(row)).collect();
    let mut widths = [0; 7];
    for row in &rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = width(cell).max(*widest);
        }
    }
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (number, (cell, widest)) in row.iter().zip(widths).enumerate() {
            let gap = " ".repeat(widest - width(cell));
            // Numbers are right-aligned.
            let _ = if (1..=4).contains(&number) { write!(line, "{gap}{cell}  ") } else { write!(line, "{cell}{gap}  ") };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn row(model: &ListedModel) -> [String; 7] {
    let facts = &model.facts;
    let price = |of: fn(&crate::protocol::Price) -> f64| facts.price.map_or_else(|| "–".to_owned(), |price| dollars(of(&price)));
    let takes = [(facts.images, "images"), (facts.tools == Some(true), "tools"), (facts.reasoning, "effort")];
    let takes: Vec<&str> = takes.into_iter().filter_map(|(able, word)| able.then_some(word)).collect();
    let is_unverified = model.source == "catalogue" && model.verified.is_none();
    let note = match &model.lacks {
        Some(lacks) if is_unverified => format!("unverified; {lacks}"),
        Some(lacks) => lacks.clone(),
        None if is_unverified => "unverified".to_owned(),
        None if model.source == "catalogue" => String::new(),
        None => model.source.clone(),
    };
    [
        clean(&facts.name).into_owned(),
        tokens(facts.context_window),
        facts.max_output_tokens.map_or_else(|| "–".to_owned(), tokens),
        price(|price| price.input),
        price(|price| price.output),
        takes.join(" "),
        clean(&note).replace('\n', " "),
    ]
}

/// Formats a token count, as in `200k` and `1.05M`.
fn tokens(count: u64) -> String {
    let trimmed = |number: f64| format!("{number:.2}").trim_end_matches('0').trim_end_matches('.').to_owned();
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}k", count / 1_000),
        _ => format!("{}M", trimmed(count as f64 / 1e6)),
    }
}

/// Formats a price with two decimal places, or with up to four if necessary.
fn dollars(price: f64) -> String {
    let cents = format!("{price:.2}");
    if cents.parse() == Ok(price) { cents } else { format!("{price:.4}").trim_end_matches('0').to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{ModelFacts, Price};

    #[test]
    fn model_rows_show_known_facts_and_omit_unknown_ones() {
        let price = Price { input: 0.075, output: 4.5, cache_read: 0.0, cache_write: 0.0 };
        let known =
            ModelFacts { max_output_tokens: Some(128_000), images: true, ..ModelFacts::for_test("a/b", 1_050_000, Some(price)) };
        let unknown = ModelFacts { reasoning: true, ..ModelFacts::for_test("local/lengthy", 32_768, None) };
        let models = [
            ListedModel {
                facts: known,
                source: "catalogue".to_owned(),
                verified: Some("2026-11-29".to_owned()),
                ..ListedModel::default()
            },
            ListedModel {
                facts: unknown,
                lacks: Some("set A_KEY".to_owned()),
                source: "catalogue".to_owned(),
                ..ListedModel::default()
            },
            ListedModel {
                facts: ModelFacts::for_test("a/c", 1_000, None),
                source: "catalogue".to_owned(),
                ..ListedModel::default()
            },
        ];
        assert_eq!(
            table(&models),
            "\
model          window  output  $/M in  $/M out  supports
a/b             1.05M    128k   0.075     4.50  images
local/lengthy     32k       –       –        –  effort    unverified; set A_KEY
a/c                1k       –       –        –            unverified
"
        );
    }
}
