//! The `FindTools` tool, which loads tools by name or by topic.

use super::loaded::{LoadedTools, has_name};
use super::{SELDOM_USED, TOGETHER, is_seldom_used};
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, ToolError};
use crate::text::clean;
use crate::tools::arguments::{parse, schema};
use crate::tools::call_result::{CallResult, ToolOutput};
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::error::{invalid, stale_denial};
use crate::tools::mcp::{RemoteTools, ServerTool, single_line};
use crate::tools::on_demand::FIND_TOOLS as NAME;
use crate::tools::paths::Paths;
use crate::tools::registry::enabled_built_in;
use crate::tools::settings::ToolSettings;
use crate::tools::tool::{AnyTool, Payload, SharedTool};
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

/// Maximum number of tools that one topic search loads.
const MAX_FOUND: usize = 10;
const QUERY_CHARS: usize = 500;
const LINE_CHARS: usize = 300;
/// Maximum number of servers to list in the description.
const MAX_SERVERS: usize = 30;
/// Words in a query that are ignored.
const FILLERS: &[&str] = &["a", "an", "and", "the", "of", "to", "for", "or", "in", "on", "with", "from", "tool", "tools"];

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Arguments {
    /// Tool names, or the task to do.
    query: String,
    /// Only tools of this MCP server.
    server: Option<String>,
}

/// A tool that can be loaded.
enum LoadableTool {
    BuiltIn(&'static dyn AnyTool),
    /// A tool that exists only in this session.
    OfSession(SharedTool),
    OfServer(Arc<ServerTool>),
}

/// The tool that loads other tools, for one state of the policy and the servers.
pub(crate) struct FindTools {
    tools: Vec<LoadableTool>,
    /// Names of the tools that can be loaded, in the form used in policies.
    names: HashSet<String>,
    loaded: LoadedTools,
    description: String,
    has_servers: bool,
    /// Capability that the policy grants, taken from one of the tools that can be loaded.
    capability: &'static str,
}

struct Work {
    lines: String,
    names: Vec<String>,
}

impl LoadableTool {
    fn as_tool(&self) -> &dyn AnyTool {
        match self {
            Self::BuiltIn(tool) => *tool,
            Self::OfSession(tool) => &**tool,
            Self::OfServer(tool) => &**tool,
        }
    }

    fn server(&self) -> Option<&str> {
        match self {
            Self::BuiltIn(_) | Self::OfSession(_) => None,
            Self::OfServer(tool) => Some(&tool.tool().server),
        }
    }

    /// Scores how well a tool matches the words. A match in the name counts most, followed by one in an alias or the
    /// server's name, and one in the description. If there are no words, every tool matches.
    fn score(&self, wanted: &[String]) -> usize {
        if wanted.is_empty() {
            return 1;
        }
        let (name, others, server, description) = match self {
            Self::BuiltIn(_) | Self::OfSession(_) => {
                let tool = self.as_tool();
                let aliases = split_words(&tool.alias_names().join(" "));
                (split_words(tool.name()), aliases, Vec::new(), split_words(tool.description()))
            }
            Self::OfServer(tool) => {
                let tool = tool.tool();
                let title = split_words(tool.title.as_deref().unwrap_or_default());
                (split_words(&tool.name), title, split_words(&tool.server), split_words(&tool.description))
            }
        };
        let worth = |word: &String, among: &[String], whole: usize, part: usize| {
            let begins = |other: &String| other.starts_with(word) || other.len() > 3 && word.starts_with(other);
            match word {
                word if among.contains(word) => whole,
                word if word.len() > 2 && among.iter().any(begins) => part,
                _ => 0,
            }
        };
        let of_word = |word: &String| {
            worth(word, &name, 12, 6) + worth(word, &others, 6, 3) + worth(word, &server, 4, 2) + worth(word, &description, 2, 1)
        };
        let each: Vec<usize> = wanted.iter().map(of_word).collect();
        let hits = each.iter().filter(|worth| **worth > 0).count();
        each.iter().sum::<usize>() * hits
    }
}

impl FindTools {
    /// Creates the tool for these settings. Returns `None` if all tools are offered from the start.
    pub(in crate::tools) fn new<'s>(
        settings: &ToolSettings,
        remote: Option<&RemoteTools>,
        local: impl Iterator<Item = &'s SharedTool>,
        on_demand: bool,
        loaded: LoadedTools,
    ) -> Option<Self> {
        let may = |tool: &dyn AnyTool| {
            let is_clear = remote.is_none_or(|remote| !remote.is_remote_name(tool.name()));
            is_clear && (settings.grants)(tool.capability()) && (settings.may_use)(tool.name()).is_ok()
        };
        // Without this tool, no tool could be loaded.
        let on_demand = on_demand && (settings.may_use)(NAME).is_ok();
        let built_in =
            enabled_built_in(settings).map(|tool| &**tool).filter(|tool| on_demand && is_seldom_used(tool.name()) && may(*tool));
        let mut tools: Vec<LoadableTool> = built_in.map(LoadableTool::BuiltIn).collect();
        let local = local.filter(|tool| on_demand && may(&***tool));
        tools.extend(local.map(|tool| LoadableTool::OfSession(Arc::clone(tool))));
        tools.extend(remote.into_iter().flat_map(|remote| remote.on_demand().iter().cloned()).map(LoadableTool::OfServer));
        let capability = tools.first()?.as_tool().capability();
        Some(Self {
            names: tools.iter().map(|tool| tool.as_tool().name().to_owned()).collect(),
            loaded,
            description: description(&tools),
            has_servers: tools.iter().any(|tool| tool.server().is_some()),
            capability,
            tools,
        })
    }

    /// Returns whether a tool must be loaded before it is offered.
    pub(in crate::tools) fn loads(&self, tool: &dyn AnyTool) -> bool {
        self.names.contains(tool.name())
    }

    /// Returns whether a tool must be loaded before it is offered and has not been loaded yet.
    pub(in crate::tools) fn needs_loading(&self, tool: &dyn AnyTool) -> bool {
        self.loads(tool) && !self.loaded.has(tool)
    }

    /// Returns the loaded tools in the order in which they were loaded, so any newly loaded tool comes last.
    pub(in crate::tools) fn loaded_tools(&self) -> impl Iterator<Item = &dyn AnyTool> {
        let mut seen = HashSet::new();
        let find = |name: String| self.tools.iter().map(LoadableTool::as_tool).find(|tool| has_name(*tool, &name));
        self.loaded.names().into_iter().filter_map(find).filter(move |tool| seen.insert(tool.name().to_owned()))
    }

    /// Returns whether `name` refers to this tool.
    pub(in crate::tools) fn is_called(name: &str) -> bool {
        name.replace('_', "").eq_ignore_ascii_case(NAME)
    }

    fn search(&self, arguments: &Arguments) -> Result<Work, ToolError> {
        let query: String = arguments.query.chars().take(QUERY_CHARS).collect();
        let named = self.find_by_name(&query);
        if !named.is_empty() {
            return Ok(work(&named, 0));
        }
        let of_server = |tool: &&LoadableTool| {
            let server = arguments.server.as_ref();
            server.is_none_or(|server| tool.server().is_some_and(|own| own.eq_ignore_ascii_case(server)))
        };
        let searched: Vec<&LoadableTool> = self.tools.iter().filter(of_server).collect();
        if let (true, Some(server)) = (searched.is_empty(), &arguments.server) {
            return Err(invalid(format!("no MCP server `{}` has tools to load; omit `server`", single_line(server, LINE_CHARS))));
        }
        let mut wanted = split_words(&query);
        wanted.retain(|word| !FILLERS.contains(&word.as_str()));
        if wanted.is_empty() && arguments.server.is_none() {
            return Err(invalid("`query` has no words; use tool names, or words that describe what the tools should do"));
        }
        let mut scored: Vec<(usize, &dyn AnyTool)> =
            searched.into_iter().map(|tool| (tool.score(&wanted), tool.as_tool())).collect();
        scored.sort_by(|(one, first), (other, second)| {
            other.cmp(one).then_with(|| first.offered_name().cmp(second.offered_name()))
        });
        let best = scored.first().map_or(0, |(score, _)| *score);
        scored.retain(|(score, _)| *score > 0 && *score * 2 >= best);
        let more = scored.len().saturating_sub(MAX_FOUND);
        let found: Vec<&dyn AnyTool> = scored.into_iter().take(MAX_FOUND).map(|(_, tool)| tool).collect();
        Ok(work(&found, more))
    }

    /// Returns the tools whose exact names occur in a query, along with the tools that are loaded together with them.
    fn find_by_name(&self, query: &str) -> Vec<&dyn AnyTool> {
        let is_in_name = |letter: char| letter.is_alphanumeric() || "_-./:".contains(letter);
        let given: Vec<&str> = query.split(|letter: char| !is_in_name(letter)).collect();
        let starts_all = TOGETHER.first().is_some_and(|first| given.contains(first));
        let is_meant =
            |tool: &&dyn AnyTool| given.iter().any(|name| has_name(*tool, name)) || starts_all && TOGETHER.contains(&tool.name());
        self.tools.iter().map(LoadableTool::as_tool).filter(is_meant).collect()
    }
}

fn description(tools: &[LoadableTool]) -> String {
    let mut groups = Vec::new();
    for (names, topic) in SELDOM_USED {
        let is_there = |name: &&&str| tools.iter().any(|tool| tool.server().is_none() && tool.as_tool().name() == **name);
        let names: Vec<&str> = names.iter().filter(is_there).copied().collect();
        if !names.is_empty() {
            let topic = if topic.is_empty() { String::new() } else { format!(" ({topic})") };
            groups.push(format!("{}{topic}", names.join(", ")));
        }
    }
    let mut text = "Loads tools by name or topic; they can be called from the next step on.".to_owned();
    if !groups.is_empty() {
        let _ = write!(text, " Built in: {}.", groups.join("; "));
    }
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for server in tools.iter().filter_map(LoadableTool::server) {
        match counts.iter_mut().find(|(name, _)| *name == server) {
            Some((_, count)) => *count += 1,
            None => counts.push((server, 1)),
        }
    }
    let more = counts.len().saturating_sub(MAX_SERVERS);
    let mut servers: Vec<String> =
        counts.iter().take(MAX_SERVERS).map(|(server, count)| format!("{} ({count})", single_line(server, LINE_CHARS))).collect();
    if more > 0 {
        servers.push(format!("{more} more"));
    }
    if !servers.is_empty() {
        let _ = write!(text, " MCP servers, with their number of tools: {}.", servers.join(", "));
    }
    text
}

/// Lists the tools' names and descriptions, one tool per line.
fn work(found: &[&dyn AnyTool], more: usize) -> Work {
    let mut lines = String::new();
    for tool in found {
        let cleaned = clean(tool.description());
        let first = cleaned.lines().next().unwrap_or_default();
        let _ = writeln!(lines, "{}: {}", tool.offered_name(), single_line(first, LINE_CHARS));
    }
    match (found.len(), more) {
        (0, _) => lines.push_str("[no tool matches; use other words, or a tool name]"),
        (_, 0) => lines.push_str("[loaded: call them by these names]"),
        _ => {
            let _ = write!(lines, "[loaded: call them by these names; {more} more tools match, use a more specific query]");
        }
    }
    Work { lines, names: found.iter().map(|tool| tool.name().to_owned()).collect() }
}

/// Splits text into lower-case words. Names such as `searchDocs_v2` are split too.
fn split_words(text: &str) -> Vec<String> {
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

impl AnyTool for FindTools {
    fn name(&self) -> &'static str {
        NAME
    }

    fn alias_names(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn capability(&self) -> &'static str {
        self.capability
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn restores(&self) -> bool {
        false
    }

    fn schema(&self, _: &str) -> Value {
        let mut schema = schema::<Arguments>();
        if let (false, Some(properties)) = (self.has_servers, schema["properties"].as_object_mut()) {
            properties.remove("server");
        }
        schema
    }

    fn actions(&self, _: &str, _: Map<String, Value>, _: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(Vec::new())
    }

    fn draft(&self, _: &str, arguments: Map<String, Value>, _: &ToolSettings) -> Result<CallDraft<Payload>, ToolError> {
        let arguments: Arguments = parse(arguments)?;
        let work = self.search(&arguments)?;
        let summary = format!("Find tools for {}", single_line(&arguments.query, LINE_CHARS));
        Ok(CallDraft { summary, actions: Vec::new(), proposal: None, effect: CallEffect::Reads, work: Box::new(work) })
    }

    fn run(&self, payload: Payload, _: Arc<ToolSettings>, _: RunContext) -> BoxFuture<'static, CallResult> {
        let loaded = self.loaded.clone();
        async move {
            let Ok(work) = payload.downcast::<Work>() else { return Err(stale_denial().into()) };
            let Work { lines, names } = *work;
            loaded.add(names).await;
            Ok(ToolOutput::from(lines))
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_every_case_style_are_split_into_words() {
        assert_eq!(split_words("searchDocs_v2-fast  HTML"), ["search", "docs", "v2", "fast", "html"]);
        assert_eq!(split_words("größe: LÄNGE"), ["größe", "länge"]);
        assert!(split_words("  ,;").is_empty());
    }
}
