//! First-time setup of the model, the policy and the theme: requests and results.

use super::{Mode, Problem, SecretString};
use serde::{Deserialize, Serialize};

/// Setup request that affects the user's files and this machine. Front ends never accept it as text, because it can
/// contain an API key and determines which actions need approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetupRequest {
    /// List the available choices.
    Look,
    /// Send a minimal request to the model. The result contains the same `number`.
    Test { reach: ModelAddress, number: u64 },
    /// Save the API key, if one was entered, and use this model for new sessions.
    Take { reach: ModelAddress },
    /// Finish setup by saving the approval choice, the theme, and whether to check daily for an updated list of models.
    End { approvals: Option<String>, theme: Option<String>, looks_daily: bool },
}

/// Model, together with its API key or server address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelAddress {
    /// Model in the form `provider/name`. If `address` is set, only the model name, or empty to use the first model
    /// that the server lists.
    pub model: String,
    /// API key that the user typed. Absent if the saved or configured key is used.
    pub key: Option<SecretString>,
    /// Address of a server that is compatible with OpenAI's Chat Completions API.
    pub address: Option<String>,
}

/// Result of a setup request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum SetupEvent {
    Found(SetupInfo),
    Tested {
        number: u64,
        outcome: TestOutcome,
    },
    /// The model will be used for new sessions. `lines` lists the files that were written.
    Taken {
        model: String,
        lines: Vec<String>,
    },
    Ended {
        /// Approval mode of new sessions, if an approval choice was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<Mode>,
        lines: Vec<String>,
    },
    /// All or part of the request failed.
    Failed {
        problem: Problem,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestOutcome {
    #[serde(rename_all = "camelCase")]
    Answered {
        model: String,
        latency_ms: u64,
    },
    Failed {
        message: String,
    },
}

/// Choices available for setup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetupInfo {
    /// Models that can be used immediately, each with its source.
    pub models: Vec<FoundModel>,
    /// Providers that accept an API key, each with a suggested model.
    pub providers: Vec<FoundModel>,
    /// Model that is used if the user chooses none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_now: Option<String>,
    /// Where API keys are saved.
    pub keys_go_to: String,
    /// Available approval choices.
    pub approvals: Vec<ApprovalsChoice>,
    /// Name of the approval choice that is currently configured, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvals_now: Option<String>,
    /// Description of the sandbox on this system.
    pub sandbox: String,
    /// URL of the public list of models. Absent if a list is already configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_list: Option<String>,
    /// Sentences about other agents whose settings can be imported, one per agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_agents: Vec<String>,
}

/// Model, with where it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FoundModel {
    pub model: String,
    /// Where the model was found: `ANTHROPIC_API_KEY (…k3f9)`, `Ollama at http://127.0.0.1:11434/v1`. For a provider,
    /// its name.
    pub by: String,
}

/// Approval choice, which determines the actions that need approval in new sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalsChoice {
    pub name: String,
    pub title: String,
    /// Sentence about the consequences of this choice.
    pub words: String,
    pub suggested: bool,
}
