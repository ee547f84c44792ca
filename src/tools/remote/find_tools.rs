//! FindTools: the tools of servers by words, where they are too many to be told with every request.

use super::answer::short;
use super::found::Found;
use super::server_tool::ServerTool;
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, ToolError};
use crate::text::clean;
use crate::tools::arguments::{parse, schema};
use crate::tools::paths::Paths;
use crate::tools::tool::{AnyTool, Draft, Effect, Output, Payload, Settings, Told, invalid, never_allowed};
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt::Write;
use std::sync::Arc;

pub const NAME: &str = "FindTools";
/// Found at once.
const MOST_FOUND: usize = 10;
const QUERY_CHARS: usize = 500;
const LINE_CHARS: usize = 300;
/// Servers that the description names.
const SERVERS_NAMED: usize = 30;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Arguments {
    /// What the tool is to do, in a few words; or its name.
    query: String,
    /// Only the tools of this server.
    server: Option<String>,
}

pub(super) struct FindTools {
    tools: Vec<Arc<ServerTool>>,
    found: Found,
    description: String,
}

struct Work {
    lines: String,
    found: Vec<(String, String)>,
}

impl FindTools {
    pub(super) fn new(tools: Vec<Arc<ServerTool>>, found: Found) -> Self {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for tool in &tools {
            let server = tool.tool().server.as_str();
            match counts.iter_mut().find(|(name, _)| *name == server) {
                Some((_, count)) => *count += 1,
                None => counts.push((server, 1)),
            }
        }
        let more = counts.len().saturating_sub(SERVERS_NAMED);
        let mut named: Vec<String> =
            counts.iter().take(SERVERS_NAMED).map(|(server, count)| format!("{} ({count})", short(server, LINE_CHARS))).collect();
        if more > 0 {
            named.push(format!("{more} more"));
        }
        let description = format!(
            "Finds tools of MCP servers by words in their names and descriptions. There are {} of them, too many to be listed here: {}. \
             What is found can be called from the next step on.",
            tools.len(),
            named.join(", ")
        );
        Self { tools, found, description }
    }

    fn search(&self, arguments: &Arguments) -> Result<Work, ToolError> {
        let query: String = arguments.query.chars().take(QUERY_CHARS).collect();
        let words = words(&query);
        let of_server = |tool: &&Arc<ServerTool>| {
            arguments.server.as_ref().is_none_or(|server| tool.tool().server.eq_ignore_ascii_case(server))
        };
        let mut searched: Vec<&Arc<ServerTool>> = self.tools.iter().filter(of_server).collect();
        if let (true, Some(server)) = (searched.is_empty(), &arguments.server) {
            return Err(invalid(format!("no server `{}` has tools here; leave `server` out", short(server, LINE_CHARS))));
        }
        if words.is_empty() && arguments.server.is_none() {
            return Err(invalid("`query` has no words; say what the tool is to do"));
        }
        let mut scored: Vec<(usize, &Arc<ServerTool>)> = searched.drain(..).map(|tool| (score(tool, &words), tool)).collect();
        scored.retain(|(score, _)| *score > 0);
        scored.sort_by(|(one, first), (other, second)| {
            other.cmp(one).then_with(|| first.offered_name().cmp(second.offered_name()))
        });
        let more = scored.len().saturating_sub(MOST_FOUND);
        scored.truncate(MOST_FOUND);
        let mut lines = String::new();
        for (_, tool) in &scored {
            let first = clean(&tool.tool().description).lines().next().unwrap_or_default().to_owned();
            let _ = writeln!(lines, "{}: {}", tool.offered_name(), short(&first, LINE_CHARS));
        }
        if scored.is_empty() {
            lines.push_str("nothing was found; try other words, or one word");
        } else {
            lines.push_str("[they can be called by these names from now on");
            if more > 0 {
                let _ = write!(lines, "; {more} more would fit, say more exactly what you need");
            }
            lines.push(']');
        }
        let found = scored.iter().map(|(_, tool)| (tool.tool().server.clone(), tool.tool().name.clone())).collect();
        Ok(Work { lines, found })
    }
}

/// Lower case, and `searchDocs_v2` in its parts.
fn words(text: &str) -> Vec<String> {
    let (mut all, mut word, mut was_small) = (Vec::new(), String::new(), false);
    for letter in text.chars() {
        let ends = !letter.is_alphanumeric() || was_small && letter.is_uppercase();
        if ends && !word.is_empty() {
            all.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
        was_small = letter.is_lowercase() || letter.is_numeric();
    }
    all.push(word);
    all.retain(|word| !word.is_empty());
    all.dedup();
    all
}

/// Words of the name count most, then the title and the server, then the description. Without words everything counts.
fn score(tool: &ServerTool, wanted: &[String]) -> usize {
    if wanted.is_empty() {
        return 1;
    }
    let tool = tool.tool();
    let (name, title) = (words(&tool.name), words(tool.title.as_deref().unwrap_or_default()));
    let (server, description) = (words(&tool.server), words(&tool.description));
    let worth = |word: &String, among: &[String], whole: usize, part: usize| {
        if among.contains(word) {
            whole
        } else if word.len() > 2
            && among.iter().any(|other| other.starts_with(word) || other.len() > 3 && word.starts_with(other))
        {
            part
        } else {
            0
        }
    };
    let of_word = |word: &String| {
        worth(word, &name, 12, 6) + worth(word, &title, 6, 3) + worth(word, &server, 4, 2) + worth(word, &description, 2, 1)
    };
    let each: Vec<usize> = wanted.iter().map(of_word).collect();
    let hits = each.iter().filter(|worth| **worth > 0).count();
    each.iter().sum::<usize>() * hits
}

impl AnyTool for FindTools {
    fn name(&self) -> &'static str {
        NAME
    }

    fn alias_names(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn capability(&self) -> &'static str {
        "Mcp.Invoke"
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn restores(&self) -> bool {
        false
    }

    fn schema(&self, _: &str) -> Value {
        schema::<Arguments>()
    }

    fn actions(&self, _: &str, _: Map<String, Value>, _: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(Vec::new())
    }

    fn draft(&self, _: &str, arguments: Map<String, Value>, _: &Settings) -> Result<Draft<Payload>, ToolError> {
        let arguments: Arguments = parse(arguments)?;
        let work = self.search(&arguments)?;
        let summary = format!("Find tools for {}", short(&arguments.query, LINE_CHARS));
        Ok(Draft { summary, actions: Vec::new(), proposal: None, effect: Effect::Reads, work: Box::new(work) })
    }

    fn run(&self, payload: Payload, _: Arc<Settings>, _: RunContext) -> BoxFuture<'static, Output> {
        let found = self.found.clone();
        async move {
            let Ok(work) = payload.downcast::<Work>() else { return Err(never_allowed().into()) };
            let Work { lines, found: tools } = *work;
            found.add(tools).await;
            Ok(Told::from(lines))
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_every_way_to_write_a_name() {
        assert_eq!(words("searchDocs_v2-fast  HTML"), ["search", "docs", "v2", "fast", "html"]);
        assert_eq!(words("größe: LÄNGE"), ["größe", "länge"]);
        assert!(words("  ,;").is_empty());
    }
}
