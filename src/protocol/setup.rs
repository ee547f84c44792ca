//! The first questions: which model answers, which policy holds, how it looks. What is asked for them, and what comes back.

use super::KeyText;
use serde::{Deserialize, Serialize};

/// What the first questions want of the person's files and of this machine. No front end can be asked for it in writing: it holds a
/// key, and a policy is chosen by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetupAsked {
    /// What there is to choose from.
    Look,
    /// Send one tiny request. The number comes back with the answer.
    Test { reach: Reach, number: u64 },
    /// Keep its key, where it has one, and make it the model of new sessions.
    Take { reach: Reach },
    /// The questions are over: this policy and this theme are kept, where they were chosen.
    End { preset: Option<String>, theme: Option<String> },
}

/// A model, and how it is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// `provider/name`. Behind an address only the name; empty for the first one that its server lists.
    pub model: String,
    /// One that was typed; else what is kept or set already.
    pub key: Option<KeyText>,
    /// Any server that speaks the Chat Completions of OpenAI.
    pub address: Option<String>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum SetupTold {
    Found(SetupFound),
    Tested {
        number: u64,
        outcome: TestOutcome,
    },
    /// This model is the one of new sessions from now on; what was written, in lines.
    Taken {
        model: String,
        lines: Vec<String>,
    },
    Ended {
        /// A policy was written.
        policy: bool,
        lines: Vec<String>,
    },
    /// Nothing of what was asked for was done, or not all of it.
    Failed {
        message: String,
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

/// What there is to choose from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetupFound {
    /// Models that could be asked now, each with what it was found by.
    pub models: Vec<FoundModel>,
    /// Providers that take a key, each with the model that would be asked.
    pub providers: Vec<FoundModel>,
    /// What is asked where nothing is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_now: Option<String>,
    /// Where a key would be kept, in words.
    pub keys_go_to: String,
    pub presets: Vec<PresetFacts>,
    /// The person has a policy of their own, which another choice takes the place of.
    pub has_policy: bool,
    /// What this system holds commands with.
    pub sandbox: String,
}

/// A model and where it was found: `ANTHROPIC_API_KEY (…k3f9)`, `Ollama at http://127.0.0.1:11434/v1`; of a provider its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FoundModel {
    pub model: String,
    pub by: String,
}

/// A policy to start from, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PresetFacts {
    pub name: String,
    pub runs: String,
    pub asks: String,
    pub never: String,
    pub suggested: bool,
}
