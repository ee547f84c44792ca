//! Agent definitions, which consist of a name, tools, a model and instructions.

use crate::protocol::Effort;
use crate::skills::Fault;
use crate::text::clean_line;
use serde::Serialize;

/// Maximum length of an agent name, in characters.
const NAME_CHARS: usize = 64;
/// Maximum length of a description, in characters. Longer descriptions are truncated.
const DESCRIPTION_CHARS: usize = 2048;
/// Maximum number of entries in a tool list.
const MAX_TOOLS: usize = 200;
/// Modes defined by other agents that make an agent read-only.
const READING_MODES: [&str; 2] = ["plan", "read-only"];
/// Maximum size of an agent's instructions, in bytes.
const PROMPT_BYTES: usize = 64 << 10;

/// Owner of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum AgentOrigin {
    Project,
    User,
    Plugin,
    BuiltIn,
}

/// Agent as described by its definition file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentDefinition {
    pub name: String,
    /// One-line description without control characters.
    pub description: String,
    /// Tools granted to the agent, as written in the file; `None` if the file does not list any.
    pub tools: Option<Vec<String>>,
    /// Tools denied to the agent, as written in the file.
    pub denied_tools: Vec<String>,
    /// Whether the agent is read-only, regardless of its tools.
    pub reads_only: bool,
    /// Model name, as written in the file.
    pub model: Option<String>,
    pub effort: Option<Effort>,
    /// Maximum number of steps, if set in the file.
    pub max_steps: Option<u32>,
    /// Instructions for the agent.
    pub prompt: String,
    pub origin: AgentOrigin,
    /// Display path of the definition file.
    pub file: String,
}

impl AgentDefinition {
    /// Returns whether the agent has this name, ignoring case.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.trim())
    }
}

/// Definition fields read so far.
#[derive(Debug, Default)]
pub(super) struct DefinitionFields {
    pub name: Option<(String, usize)>,
    pub description: Option<(String, usize)>,
    pub tools: Option<Vec<String>>,
    pub denied_tools: Vec<String>,
    pub reads_only: bool,
    pub model: Option<String>,
    pub effort: Option<Effort>,
    pub max_steps: Option<u32>,
    pub prompt: String,
    pub errors: Vec<Fault>,
    pub warnings: Vec<Fault>,
}

/// Result of parsing a definition file.
#[derive(Debug, Default)]
pub(super) struct ParsedDefinition {
    /// Parsed agent; `None` if there are errors.
    pub agent: Option<AgentDefinition>,
    pub errors: Vec<Fault>,
    pub warnings: Vec<Fault>,
}

impl ParsedDefinition {
    pub(super) fn failed(fault: Fault) -> Self {
        Self { errors: vec![fault], ..Self::default() }
    }
}

impl DefinitionFields {
    /// Sets the reasoning effort by name.
    pub(super) fn take_effort(&mut self, name: &str, line: usize) {
        let lower = name.trim().to_ascii_lowercase();
        let known = Effort::ALL.into_iter().find(|effort| effort.as_str() == lower);
        let Some(effort) = known.or_else(|| (lower == "none").then_some(Effort::Off)) else {
            let all = Effort::ALL.map(Effort::as_str).join(", ");
            self.warnings.push(Fault::at(line, format!("unknown effort `{}`; expected one of {all}", name.escape_debug())));
            return;
        };
        self.effort = Some(effort);
    }

    /// Sets the mode. Only read-only modes have an effect, because no mode can give an agent more permissions than
    /// its session has.
    pub(super) fn take_mode(&mut self, name: &str, line: usize) {
        if READING_MODES.contains(&name) {
            self.reads_only = true;
        } else if !name.is_empty() && name != "default" {
            let message = format!("the mode `{}` has no effect: an agent uses the session's mode", name.escape_debug());
            self.warnings.push(Fault::at(line, message));
        }
    }

    /// Sets the model. `inherit` selects the session's model. A name without a provider is that of a model of the
    /// session's provider.
    pub(super) fn take_model(&mut self, name: &str) {
        let name = clean_line(name.trim());
        if name.is_empty() || name.eq_ignore_ascii_case("inherit") {
            return;
        }
        self.model = Some(name);
    }

    /// Sets the maximum number of steps.
    pub(super) fn take_max_steps(&mut self, text: &str, line: usize) {
        match text.trim().parse() {
            Ok(steps @ 1..) => self.max_steps = Some(steps),
            Ok(0) | Err(_) => self.warnings.push(Fault::at(line, "the number of steps must be a whole number of at least 1")),
        }
    }

    /// Limits the number of entries in a tool list, recording an error if there are too many.
    pub(super) fn checked_tools(&mut self, mut tools: Vec<String>, line: usize) -> Vec<String> {
        if tools.len() > MAX_TOOLS {
            self.errors.push(Fault::at(line, format!("a list of tools has more than {MAX_TOOLS} entries")));
            tools.truncate(MAX_TOOLS);
        }
        tools.dedup();
        tools
    }

    /// Returns the finished agent. `stem` is the file name without its extension.
    pub(super) fn finish(mut self, stem: &str, file: &str, origin: AgentOrigin) -> ParsedDefinition {
        let name = self.checked_name(stem);
        let description = self.checked_description();
        let prompt = self.prompt.trim().to_owned();
        if prompt.is_empty() {
            self.warnings.push(Fault::general("the agent has no instructions"));
        } else if prompt.len() > PROMPT_BYTES {
            let message = format!("the instructions are {} KB; the limit is {} KB", prompt.len() >> 10, PROMPT_BYTES >> 10);
            self.errors.push(Fault::general(message));
        }
        let agent = self.errors.is_empty().then(|| AgentDefinition {
            name,
            description,
            tools: self.tools,
            denied_tools: self.denied_tools,
            reads_only: self.reads_only,
            model: self.model,
            effort: self.effort,
            max_steps: self.max_steps,
            prompt,
            origin,
            file: file.to_owned(),
        });
        ParsedDefinition { agent, errors: self.errors, warnings: self.warnings }
    }

    fn checked_name(&mut self, stem: &str) -> String {
        let (name, line) = self.name.take().unwrap_or_else(|| {
            self.warnings.push(Fault::at(1, "`name` is missing; the agent is named after its file"));
            (stem.to_owned(), 1)
        });
        if let Some(why) = wrong_name(&name) {
            self.errors.push(Fault::at(line, why));
        }
        name
    }

    fn checked_description(&mut self) -> String {
        let (text, line) = self.description.take().unwrap_or_default();
        let text = clean_line(&text.split_whitespace().collect::<Vec<_>>().join(" "));
        if text.is_empty() {
            let message = "`description` is missing; say what the agent does and when to use it";
            self.errors.push(Fault::at(line.max(1), message));
        }
        if text.chars().count() > DESCRIPTION_CHARS {
            self.warnings
                .push(Fault::at(line, format!("only the first {DESCRIPTION_CHARS} characters of `description` are used")));
            return text.chars().take(DESCRIPTION_CHARS).collect();
        }
        text
    }
}

/// Returns a description of what is wrong with an agent's name, or `None` if the name is valid.
pub(super) fn wrong_name(name: &str) -> Option<String> {
    let shown = name.chars().take(NAME_CHARS).collect::<String>();
    let shown = shown.escape_debug();
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | ' ');
    let is_edge = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    if name.is_empty() {
        Some("the name is empty".to_owned())
    } else if !name.chars().all(is_allowed) {
        Some(format!("the name `{shown}` may contain only letters a to z, digits, hyphens, underscores, dots and spaces"))
    } else if name.len() > NAME_CHARS {
        Some(format!("the name `{shown}…` has {} characters; the limit is {NAME_CHARS}", name.len()))
    } else if !is_edge(name.chars().next()) || !is_edge(name.chars().last()) || name.contains("  ") || name.contains("..") {
        Some(format!("the name `{shown}` must begin and end with a letter or a digit, without two spaces or dots in a row"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_short() {
        for name in ["explore", "Backend Architect", "code_reviewer-2", "v1.2", "a"] {
            assert_eq!(wrong_name(name), None, "{name}");
        }
        let long = "x".repeat(65);
        for name in ["", " a", "a ", "-a", "a/b", "../a", "a..b", "a  b", "ä", "a\u{1b}[31m", "a\nb", &long] {
            assert!(wrong_name(name).is_some(), "{name:?}");
        }
        assert!(wrong_name("a\u{1b}[2J").unwrap().contains("`a\\u{1b}[2J`"));
    }
}
