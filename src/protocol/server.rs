//! MCP servers as a front end sees them: their states and their requests for user input.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Name of the server that provides the back-end tools.
pub const BACKEND_SERVER: &str = "backend-tools";

/// Server named by the records about requests of agents. No MCP server may have this name.
pub(crate) const SAMPLED_BY_AGENT: &str = "Agent";

/// State of a configured MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerStatus {
    pub name: String,
    /// Server command or URL: `npx -y server`, `https://example.org/mcp`.
    pub reached_by: String,
    #[serde(flatten)]
    pub state: ServerState,
    /// Number of the server's tools that the policy lists.
    pub tools: u64,
    pub offered: u64,
    /// Whether the project configures the server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_project: bool,
    /// Notes about the server, such as tools that are ignored and why, or a deprecated protocol version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ServerState {
    /// Not started yet. Its tools are known from an earlier run.
    Asleep,
    Starting,
    Ready,
    /// The user must sign in with `aye mcp login NAME`.
    NeedsLogin,
    /// Not responding. The next call tries to connect again.
    Unreachable {
        why: String,
    },
    /// Disabled in the configuration, by the policy, or because it has not been approved.
    Off {
        why: String,
    },
}

impl ServerStatus {
    /// Returns a message if the server requires sign-in or is unreachable, which makes its tools unavailable.
    pub fn problem(&self) -> Option<String> {
        let Self { name, tools, .. } = self;
        let out = match tools {
            0 => "its tools are unavailable".to_owned(),
            1 => "its tool is unavailable".to_owned(),
            _ => format!("its {tools} tools are unavailable"),
        };
        match &self.state {
            ServerState::Unreachable { why } => {
                let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
                Some(format!("{name} (MCP): not reachable; {out} until it responds{why}"))
            }
            ServerState::NeedsLogin => {
                Some(format!("{name} (MCP): sign-in required; {out} until then. Run `aye mcp login {name}`"))
            }
            ServerState::Asleep | ServerState::Starting | ServerState::Ready | ServerState::Off { .. } => None,
        }
    }

    fn has_problem(&self) -> bool {
        matches!(self.state, ServerState::Unreachable { .. } | ServerState::NeedsLogin)
    }

    /// Returns messages about servers whose state changed: one for each server that stopped working, and one for each
    /// that recovered.
    pub fn changes(before: &[Self], now: &[Self]) -> Vec<String> {
        let said = |status: &Self| {
            let before = before.iter().find(|before| before.name == status.name);
            let same =
                before.is_some_and(|before| std::mem::discriminant(&before.state) == std::mem::discriminant(&status.state));
            match (&status.state, before) {
                _ if same => None,
                (ServerState::Off { why }, Some(_)) => Some(format!("{} (MCP): off ({why})", status.name)),
                (ServerState::Ready, Some(before)) if before.has_problem() => Some(format!("{} (MCP): reconnected", status.name)),
                _ => status.problem(),
            }
        };
        now.iter().filter_map(said).collect()
    }
}

/// Key under which `ElicitationAnswer::Accept` stores the user's answer to a question from the model.
pub const QUESTION_ANSWER: &str = "answer";

/// Request for user input during a tool call, made by an MCP server or by the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Elicitation {
    pub elicitation_id: String,
    /// Name of the requesting server, or empty if the model asks the question.
    pub server: String,
    pub message: String,
    pub wanted: ElicitationKind,
}

impl Elicitation {
    /// Returns whether the model asks a question, as opposed to a request by a server.
    pub fn is_question(&self) -> bool {
        matches!(self.wanted, ElicitationKind::Question { .. })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ElicitationKind {
    Form {
        fields: Vec<FormField>,
    },
    /// Request to visit a URL. The user opens it; aye never does.
    Visit {
        url: String,
    },
    /// Question from the model, with options to choose from. The user can also type a different answer.
    #[serde(rename_all = "camelCase")]
    Question {
        options: Vec<QuestionOption>,
        /// Number of this question within the call, starting at 1. `count` is the total number of questions.
        number: usize,
        count: usize,
    },
}

/// Answer that the user can choose for a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionOption {
    pub label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Code or a sketch that illustrates the outcome of choosing this option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// Form field as defined by MCP. Fields are never nested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FormField {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    pub takes: FieldKind,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum FieldKind {
    Text {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min_length: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_length: Option<u64>,
        /// Required format: `email`, `uri`, `date` or `date-time`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<String>,
    },
    Number {
        whole: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        minimum: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        maximum: Option<f64>,
    },
    Flag,
    /// Exactly one of these choices, which are pairs of a value and its label.
    Choice {
        choices: Vec<(String, String)>,
    },
    /// Any number of these choices, which are pairs of a value and its label.
    Choices {
        choices: Vec<(String, String)>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<u64>,
    },
}

/// The user's response to an input request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum ElicitationAnswer {
    Accept {
        content: Map<String, Value>,
    },
    Decline,
    /// The user closed the request without accepting or declining it.
    Cancel,
}

impl ElicitationAnswer {
    /// Creates an answer to a question from the model.
    pub fn to_question(answer: String) -> Self {
        Self::Accept { content: Map::from_iter([(QUESTION_ANSWER.to_owned(), Value::String(answer))]) }
    }

    pub fn outcome(&self) -> ElicitationOutcome {
        match self {
            Self::Accept { .. } => ElicitationOutcome::Accepted,
            Self::Decline => ElicitationOutcome::Declined,
            Self::Cancel => ElicitationOutcome::Cancelled,
        }
    }
}

/// Outcome of an input request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ElicitationOutcome {
    Accepted,
    Declined,
    Cancelled,
    /// The server is no longer waiting for an answer, because its call has ended.
    Withdrawn,
}

/// Resource offered by an MCP server, addressed as `@server:uri`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerResource {
    pub server: String,
    pub uri: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Whether the URI is a template that contains placeholders such as `{name}`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_template: bool,
}

/// Prompt offered by an MCP server, invoked as `/server:prompt`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerPrompt {
    pub server: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Argument names, each with whether the argument is required.
    pub arguments: Vec<(String, bool)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: ServerState) -> ServerStatus {
        let (name, reached_by) = ("github".to_owned(), "https://example.org/mcp".to_owned());
        ServerStatus { name, reached_by, state, tools: 12, offered: 30, of_project: false, notes: Vec::new() }
    }

    #[test]
    fn server_failures_and_recoveries_are_reported_once() {
        let gone = || status(ServerState::Unreachable { why: "connection refused".to_owned() });
        let (ready, login) = (status(ServerState::Ready), status(ServerState::NeedsLogin));
        let words = "github (MCP): not reachable; its 12 tools are unavailable until it responds (connection refused)";
        assert_eq!(ServerStatus::changes(&[], &[gone()]), [words]);
        assert_eq!(ServerStatus::changes(std::slice::from_ref(&ready), &[gone()]), [words]);
        let other = status(ServerState::Unreachable { why: "timed out".to_owned() });
        assert!(ServerStatus::changes(&[gone()], &[other]).is_empty(), "another reason is no news");
        assert_eq!(ServerStatus::changes(&[gone()], std::slice::from_ref(&ready)), ["github (MCP): reconnected"]);
        assert!(ServerStatus::changes(&[], std::slice::from_ref(&ready)).is_empty());
        let off = || status(ServerState::Off { why: "`run.sh` changed".to_owned() });
        assert_eq!(ServerStatus::changes(std::slice::from_ref(&ready), &[off()]), ["github (MCP): off (`run.sh` changed)"]);
        assert!(ServerStatus::changes(&[], &[off()]).is_empty(), "what is off from the start is meant to be");
        assert!(ServerStatus::changes(&[ready], &[login])[0].ends_with("Run `aye mcp login github`"));
    }

    #[test]
    fn server_states_and_elicitation_answers_use_the_names_of_the_protocol() {
        let json = serde_json::to_value(status(ServerState::NeedsLogin)).unwrap();
        assert_eq!((&json["state"], &json["reachedBy"]), (&"needs_login".into(), &"https://example.org/mcp".into()));
        let answer: ElicitationAnswer = serde_json::from_str(r#"{"action":"accept","content":{"name":"Ada"}}"#).unwrap();
        assert_eq!(answer.outcome(), ElicitationOutcome::Accepted);
        assert_eq!(serde_json::to_string(&ElicitationAnswer::Decline).unwrap(), r#"{"action":"decline"}"#);
    }
}
