//! First-time setup of model, policy and theme: its requests and their results.

use super::{Mode, Problem, SecretString};
use serde::{Deserialize, Serialize};

/// Setup request that concerns the user's files and this machine. Front ends never accept it as text, because it
/// contains an API key and determines what needs approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetupRequest {
    /// List the available choices.
    Look,
    /// Send one minimal request. The result contains the same number.
    Test { reach: ModelAddress, number: u64 },
    /// Save the API key, if any, and use this model for new sessions.
    Take { reach: ModelAddress },
    /// Finish setup: save the approval choice by its name, the theme, and whether to check daily for a new list of
    /// models.
    End { approvals: Option<String>, theme: Option<String>, looks_daily: bool },
}

/// Model and how to reach it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelAddress {
    /// `provider/name`. With an address, only the name; empty for the first model that the server lists.
    pub model: String,
    /// Typed API key; absent to use the saved or configured key.
    pub key: Option<SecretString>,
    /// Address of a server that supports OpenAI's Chat Completions API.
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
    /// The model is used for new sessions from now on. The lines list the written files.
    Taken {
        model: String,
        lines: Vec<String>,
    },
    Ended {
        /// Mode of new sessions, if an approval choice was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<Mode>,
        lines: Vec<String>,
    },
    /// The request failed, entirely or in part.
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

/// Available choices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetupInfo {
    /// Models that can be used now, each with its source.
    pub models: Vec<FoundModel>,
    /// Providers that accept an API key, each with its suggested model.
    pub providers: Vec<FoundModel>,
    /// Model used if none is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_now: Option<String>,
    /// Location where API keys are saved.
    pub keys_go_to: String,
    /// Choices for approvals.
    pub approvals: Vec<ApprovalsChoice>,
    /// Name of the configured choice, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvals_now: Option<String>,
    /// Sandbox of this system.
    pub sandbox: String,
    /// URL of the public list of models, unless a list is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_list: Option<String>,
    /// Other agents with settings that can be imported, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_agents: Vec<String>,
}

/// A model and where it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FoundModel {
    pub model: String,
    /// Source: `ANTHROPIC_API_KEY (…k3f9)`, `Ollama at http://127.0.0.1:11434/v1`; for a provider, its name.
    pub by: String,
}

/// Choice for approvals: which actions need approval in new sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalsChoice {
    pub name: String,
    pub title: String,
    /// Sentence about the consequences of the choice.
    pub words: String,
    pub suggested: bool,
}
