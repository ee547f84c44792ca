//! Discovery of local model servers by trying their default ports.

use crate::sys::http::{HttpServer, Timeouts};
use futures_util::future::join_all;
use serde_json::Value;
use std::time::Duration;

/// Default ports of Ollama, LM Studio, llama.cpp, vLLM and LiteLLM.
pub(crate) const LOCAL_PORTS: [u16; 5] = [11434, 1234, 8080, 8000, 4000];

/// Timeout for each of the two queries. Local servers respond almost immediately.
const TIMEOUT: Duration = Duration::from_millis(300);
/// Maximum size of a model list in bytes.
const MAX_BYTES: usize = 1 << 20;
const MAX_MODELS: usize = 500;
const MAX_NAME_CHARS: usize = 200;
const MAX_SERVERS: usize = 32;
/// Range of plausible context window sizes in tokens. Any other value is either a mistake or malicious.
const WINDOWS: std::ops::RangeInclusive<u64> = 256..=1_000_000_000;

/// Local server that was found and lists its models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalServer {
    /// Name of the server, such as `Ollama`, or its address if the kind of server is unknown.
    pub name: String,
    /// Base URL, to which `/chat/completions` is appended.
    pub base_url: String,
    pub models: Vec<LocalModel>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalModel {
    pub name: String,
    /// Context window in tokens. Set only if the server reports the limit that is actually in effect.
    pub context_window: Option<u64>,
}

impl LocalServer {
    /// Returns the model to use by default. Models that cannot generate text are avoided, because some servers list
    /// them too.
    pub(crate) fn first(&self) -> Option<&LocalModel> {
        let answers =
            |model: &&LocalModel| !["embed", "rerank"].iter().any(|word| model.name.to_ascii_lowercase().contains(word));
        self.models.iter().find(answers)
    }

    /// Returns the model with this name. A name without a tag refers to the tag `latest`.
    pub(crate) fn model(&self, name: &str) -> Option<&LocalModel> {
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

    /// Returns the kind of server that uses this port by default.
    fn from_port(port: u16) -> Option<Self> {
        let usual = [Self::Ollama, Self::LmStudio, Self::LlamaCpp, Self::Vllm, Self::LiteLlm];
        LOCAL_PORTS.iter().zip(usual).find(|(usual, _)| **usual == port).map(|(_, kind)| kind)
    }

    /// Returns the kind of server that names this owner for its models.
    fn from_owner(owner: &str) -> Option<Self> {
        Some(match owner {
            "library" => Self::Ollama,
            "organization_owner" => Self::LmStudio,
            "llamacpp" => Self::LlamaCpp,
            "vllm" => Self::Vllm,
            _ => return None,
        })
    }

    /// Returns the path at which the server reports the context window that is actually in effect, as opposed to the
    /// model's maximum.
    fn details(self) -> Option<&'static str> {
        match self {
            Self::Ollama => Some("/api/ps"),
            Self::LmStudio => Some("/api/v0/models"),
            Self::LlamaCpp => Some("/props"),
            Self::Vllm | Self::LiteLlm => None,
        }
    }
}

/// Queries the servers on these local ports in parallel. Returns those that respond, in the order of the ports. This
/// takes less than a second and never fails.
pub(crate) async fn local_servers(ports: &[u16]) -> Vec<LocalServer> {
    let queries = ports.iter().take(MAX_SERVERS).map(|port| probe(*port));
    join_all(queries).await.into_iter().flatten().collect()
}

async fn probe(port: u16) -> Option<LocalServer> {
    let root = format!("http://127.0.0.1:{port}");
    let server = HttpServer::new(&root, Timeouts { connect: TIMEOUT, idle: TIMEOUT }).ok()?;
    let list = get_json(&server, "/v1/models").await?;
    let entries = list.get("data")?.as_array()?;
    let owner = entries.iter().find_map(|entry| entry.get("owned_by")?.as_str());
    let kind = owner.and_then(Kind::from_owner).or_else(|| Kind::from_port(port));
    let mut models: Vec<LocalModel> = entries.iter().filter_map(model).take(MAX_MODELS).collect();
    if !models.is_empty()
        && let Some(path) = kind.and_then(Kind::details)
        && let Some(details) = get_json(&server, path).await
    {
        set_windows(&mut models, &details);
    }
    let name = kind.map_or_else(|| format!("the server at port {port}"), |kind| kind.name().to_owned());
    Some(LocalServer { name, base_url: format!("{root}/v1"), models })
}

/// Returns a server's JSON response, provided that it arrives in time and is within the size limit.
async fn get_json(server: &HttpServer, path: &str) -> Option<Value> {
    let answer = async {
        let reply = server.get(path, &Vec::new()).await.ok().filter(|reply| reply.status() == 200)?;
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

/// Returns whether a model name can be typed after `local/` and displayed safely.
fn is_name(name: &str) -> bool {
    let usual = |c: char| c.is_alphanumeric() || "-_.:/@+=#~,()[]".contains(c);
    !name.is_empty() && name.chars().count() <= MAX_NAME_CHARS && name.chars().all(usual)
}

fn window(told: &[Option<&Value>]) -> Option<u64> {
    told.iter().find_map(|value| value.as_ref()?.as_u64()).filter(|tokens| WINDOWS.contains(tokens))
}

/// Sets the context windows of models from the details that a server reports.
fn set_windows(models: &mut [LocalModel], details: &Value) {
    // llama.cpp serves one model and reports the size of each slot.
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
