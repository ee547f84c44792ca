//! Discovery of local model servers at their usual ports.

use crate::sys::http::{Server, Timeouts};
use futures_util::future::join_all;
use serde_json::Value;
use std::time::Duration;

/// Ollama, LM Studio, llama.cpp, vLLM, LiteLLM.
pub const LOCAL_PORTS: [u16; 5] = [11434, 1234, 8080, 8000, 4000];

/// For each of two questions; what does not answer at once on this machine is not waited for.
const TIMEOUT: Duration = Duration::from_millis(300);
/// No list of models is longer; something else may be.
const MAX_BYTES: usize = 1 << 20;
const MAX_MODELS: usize = 500;
const MAX_NAME_CHARS: usize = 200;
const MAX_SERVERS: usize = 32;
/// In tokens; outside of this a window is a slip, or meant to harm.
const WINDOWS: std::ops::RangeInclusive<u64> = 256..=1_000_000_000;

/// A server of this machine that lists models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// `Ollama`, or where it is.
    pub name: String,
    /// What stands before `/chat/completions`.
    pub base_url: String,
    pub models: Vec<LocalModel>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalModel {
    pub name: String,
    /// In tokens, where the server tells how much it really takes.
    pub context_window: Option<u64>,
}

impl LocalServer {
    /// The one to ask where nobody said which: some servers list what cannot answer as well.
    pub fn first(&self) -> Option<&LocalModel> {
        let answers =
            |model: &&LocalModel| !["embed", "rerank"].iter().any(|word| model.name.to_ascii_lowercase().contains(word));
        self.models.iter().find(answers)
    }

    /// The model of this name; one without a tag is the newest.
    pub fn model(&self, name: &str) -> Option<&LocalModel> {
        let latest = format!("{name}:latest");
        let named = |wanted: &str| self.models.iter().find(|model| model.name == wanted);
        named(name).or_else(|| named(&latest))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ollama,
    LmStudio,
    LlamaCpp,
    Vllm,
    LiteLlm,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Ollama => "Ollama",
            Self::LmStudio => "LM Studio",
            Self::LlamaCpp => "llama.cpp",
            Self::Vllm => "vLLM",
            Self::LiteLlm => "LiteLLM",
        }
    }

    /// What usually listens there.
    fn at(port: u16) -> Option<Self> {
        let usual = [Self::Ollama, Self::LmStudio, Self::LlamaCpp, Self::Vllm, Self::LiteLlm];
        LOCAL_PORTS.iter().zip(usual).find(|(usual, _)| **usual == port).map(|(_, kind)| kind)
    }

    /// By whom a server says that its models are.
    fn of_owner(owner: &str) -> Option<Self> {
        Some(match owner {
            "library" => Self::Ollama,
            "organization_owner" => Self::LmStudio,
            "llamacpp" => Self::LlamaCpp,
            "vllm" => Self::Vllm,
            _ => return None,
        })
    }

    /// Where it tells how much of a conversation it really takes: not what a model could, but as it was started.
    fn details(self) -> Option<&'static str> {
        match self {
            Self::Ollama => Some("/api/ps"),
            Self::LmStudio => Some("/api/v0/models"),
            Self::LlamaCpp => Some("/props"),
            Self::Vllm | Self::LiteLlm => None,
        }
    }
}

/// The servers that listen on these ports of this machine, all asked at once, in the order of the ports. Takes less than a second
/// whatever listens there, and is never an error.
pub async fn local_servers(ports: &[u16]) -> Vec<LocalServer> {
    let asked = ports.iter().take(MAX_SERVERS).map(|port| look_at(*port));
    join_all(asked).await.into_iter().flatten().collect()
}

async fn look_at(port: u16) -> Option<LocalServer> {
    let root = format!("http://127.0.0.1:{port}");
    let server = Server::new(&root, Timeouts { connect: TIMEOUT, idle: TIMEOUT }).ok()?;
    let list = ask(&server, "/v1/models").await?;
    let entries = list.get("data")?.as_array()?;
    let owner = entries.iter().find_map(|entry| entry.get("owned_by")?.as_str());
    let kind = owner.and_then(Kind::of_owner).or_else(|| Kind::at(port));
    let mut models: Vec<LocalModel> = entries.iter().filter_map(model).take(MAX_MODELS).collect();
    if !models.is_empty()
        && let Some(path) = kind.and_then(Kind::details)
        && let Some(details) = ask(&server, path).await
    {
        tell_windows(&mut models, &details);
    }
    let name = kind.map_or_else(|| format!("the server at port {port}"), |kind| kind.name().to_owned());
    Some(LocalServer { name, base_url: format!("{root}/v1"), models })
}

/// What a server answers, if it answers in JSON, in time and at reasonable length.
async fn ask(server: &Server, path: &str) -> Option<Value> {
    let answer = async {
        let reply = server.get(path, &[]).await.ok().filter(|reply| reply.status() == 200)?;
        serde_json::from_slice(&reply.into_head(MAX_BYTES).await).ok()
    };
    tokio::time::timeout(TIMEOUT, answer).await.ok()?
}

fn model(entry: &Value) -> Option<LocalModel> {
    let name = entry.get("id")?.as_str()?;
    let kind = entry.get("type").and_then(Value::as_str).unwrap_or_default();
    if !is_name(name) || matches!(kind, "embeddings" | "embedding") {
        return None;
    }
    let told = [entry.get("max_model_len"), entry.pointer("/meta/n_ctx"), entry.get("loaded_context_length")];
    Some(LocalModel { name: name.to_owned(), context_window: window(&told) })
}

/// What can be typed after `local/` and shown as it is.
fn is_name(name: &str) -> bool {
    let usual = |c: char| c.is_alphanumeric() || "-_.:/@+=#~,()[]".contains(c);
    !name.is_empty() && name.chars().count() <= MAX_NAME_CHARS && name.chars().all(usual)
}

fn window(told: &[Option<&Value>]) -> Option<u64> {
    told.iter().find_map(|value| value.as_ref()?.as_u64()).filter(|tokens| WINDOWS.contains(tokens))
}

/// From what the kinds of servers tell at their own places.
fn tell_windows(models: &mut [LocalModel], details: &Value) {
    // llama.cpp has one model, and tells for each of its slots.
    if let Some(tokens) = window(&[details.pointer("/default_generation_settings/n_ctx")]) {
        for model in &mut *models {
            model.context_window = Some(tokens);
        }
    }
    let entries = ["models", "data"].into_iter().find_map(|name| details.get(name)?.as_array());
    for entry in entries.into_iter().flatten() {
        let told = window(&[entry.get("context_length"), entry.get("loaded_context_length")]);
        let names = ["id", "name", "model"].map(|field| entry.get(field).and_then(Value::as_str));
        let meant = models.iter_mut().find(|model| names.contains(&Some(model.name.as_str())));
        if let (Some(model), Some(tokens)) = (meant, told) {
            model.context_window = Some(tokens);
        }
    }
}

#[cfg(test)]
pub(in crate::llm) mod tests;
