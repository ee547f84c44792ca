//! Detects what first-time setup can offer: keys, local model servers, policies, and this system's sandbox.

use super::approvals;
use crate::host::catalogue_update::PUBLIC_LIST;
use crate::host::context::AppContext;
use crate::host::models::LOCAL;
use crate::host::other_agents;
use crate::host::sandbox_host::tier;
use crate::llm::local_discovery::local_servers;
use crate::protocol::{FoundModel, SandboxTier, SetupInfo};
use crate::sys::process::Helper;
use crate::sys::sandbox::probe;

/// Number of characters shown from the end of a key to identify it.
const KEY_TAIL: usize = 4;
/// Maximum number of choices, limited because each one is selected with a digit key.
const MAX: usize = 9;
/// Providers that are skipped, because they are a second API of the same provider or a gateway without a URL.
const NO_KEYS: [&str; 3] = ["openai-chat", "gateway", LOCAL];

/// Returns all choices. Nothing outside this machine is contacted.
pub(crate) async fn detect_all(app: &AppContext) -> SetupInfo {
    let own = app.clone();
    let checked = tokio::task::spawn_blocking(move || sandbox(&own));
    let models = models(app).await;
    let model_now = app.settings.choose_model(None, &app.environment, &app.credentials).ok();
    let is_list_unset = app.settings.model_list().catalogue_url.is_none();
    SetupInfo {
        models,
        providers: providers(app),
        model_now: model_now.map(|choice| choice.name()),
        keys_go_to: key_storage_path(app),
        approvals: approvals::choices(),
        approvals_now: configured_approvals(app),
        sandbox: checked.await.unwrap_or_default(),
        public_list: is_list_unset.then(|| PUBLIC_LIST.to_owned()),
        other_agents: other_agents::describe_found(app),
    }
}

/// Returns the name of the approval choice that is configured, if any.
fn configured_approvals(app: &AppContext) -> Option<String> {
    let set = approvals::are_set(&app.settings).then(|| approvals::current(&app.settings.approval));
    set.flatten().map(|answer| answer.name.to_owned())
}

/// Returns the usable models, each with the name and the last characters of its key.
pub(crate) async fn models(app: &AppContext) -> Vec<FoundModel> {
    let mut found: Vec<FoundModel> = Vec::new();
    let settings = &app.settings;
    let with_key = |provider: &str| settings.provider_default_model(provider).map(|model| format!("{provider}/{model}"));
    for provider in settings.providers() {
        if let Some(variable) = settings.key_variable(&provider, &app.environment)
            && let Some(key) = app.environment.get(&variable)
            && let Some(model) = with_key(&provider)
        {
            let by = format!("{variable}{}", tail(key));
            // A gateway without a URL cannot be used.
            let asked = settings.choose_model(Some(&model), &app.environment, &app.credentials).is_ok();
            if asked && !found.iter().any(|known| known.by == by) {
                found.push(FoundModel { model, by });
            }
        }
    }
    for name in app.credentials.names().unwrap_or_default() {
        let provider = settings.providers().into_iter().find(|provider| settings.key_name(provider).is_ok_and(|key| key == name));
        if let Some(model) = provider.and_then(|provider| with_key(&provider)) {
            found.push(FoundModel { model, by: format!("saved key for {name}") });
        }
    }
    // Add a model that needs no key, or that is configured.
    if let Ok(choice) = settings.choose_model(None, &app.environment, &app.credentials)
        && !found.iter().any(|known| known.model == choice.name())
    {
        found.insert(0, FoundModel { model: choice.name(), by: format!("at {}", choice.base_url) });
    }
    for server in local_servers(&settings.local_ports()).await {
        let Some(model) = server.first().map(|model| format!("{LOCAL}/{}", model.name)) else { continue };
        let by = format!("{} at {}", server.name, server.base_url);
        match found.iter_mut().find(|known| known.model == model) {
            Some(known) => known.by = by,
            None => found.push(FoundModel { model, by }),
        }
    }
    found.truncate(MAX);
    found
}

/// Returns the last characters of a key. For a short key, returns an empty string, because those characters would
/// reveal too much of it.
fn tail(key: &str) -> String {
    let count = key.chars().count();
    let tail: String = key.chars().skip(count.saturating_sub(KEY_TAIL)).collect();
    if count > 4 * KEY_TAIL { format!(" (…{tail})") } else { String::new() }
}

fn providers(app: &AppContext) -> Vec<FoundModel> {
    let names = app.settings.providers().into_iter().filter(|name| !NO_KEYS.contains(&name.as_str()));
    let with_model = |name: String| {
        let model = app.settings.provider_default_model(&name)?;
        Some(FoundModel { model: format!("{name}/{model}"), by: name })
    };
    names.filter_map(with_model).collect()
}

fn key_storage_path(app: &AppContext) -> String {
    let file = app.credentials.file().unwrap_or(std::path::Path::new(""));
    let file = crate::text::abbreviate_home(file, &app.home);
    let file = format!("{file}, which only you can read");
    if app.settings.uses_keyring() { format!("the keyring, or without one {file}") } else { file }
}

/// Probes the system and describes its sandbox.
fn sandbox(app: &AppContext) -> String {
    let probe = probe(&Helper::default().program, &app.roots, &app.directories.data);
    let words = match tier(probe.tier) {
        SandboxTier::Preview => "sandbox: available; commands are sandboxed, and their changes can be previewed",
        SandboxTier::Guarded => "sandbox: available; commands are sandboxed, but their changes cannot be previewed",
        SandboxTier::LandlockOnly => "sandbox: path rules only; aye asks before every command",
        SandboxTier::Bare => "sandbox: not available on this kernel; aye asks before every command",
    };
    let why = if probe.missing.is_empty() { "" } else { " (why: aye doctor)" };
    format!("{words}{why}")
}
