//! `aye auth`: manages the providers' API keys, which are saved where only the user can read them.

pub(crate) mod args;

use crate::config::{ConfigError, KeyStorage, services_with_key};
use crate::host::api_keys::{KEY_BYTES, PRECEDENCE_NOTICE, check_file_location, keep};
use crate::host::console::{print_json, print_text};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::models::ModelCatalog;
use crate::host::startup::runtime;
use crate::protocol::FailureKind;
use crate::sys::secret_prompt;
use crate::text::clean;
use args::{AuthAction, LogOut};
use futures_util::future::join_all;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{IsTerminal, Read};

/// Minimum length of a key whose last characters are displayed. Displaying part of a shorter key would make the
/// remainder easy to guess.
const SHOWN_OF: usize = 16;
const MAX_SHOWN: usize = 4;

pub(crate) fn run(app: &AppContext, asked: AuthAction) -> Result<Exit, CliError> {
    match asked {
        AuthAction::LogIn { provider, key_on_stdin } => log_in(app, provider, key_on_stdin),
        AuthAction::LogOut(LogOut::Of(provider)) => log_out(app, &[key_name(app, &provider)?]),
        AuthAction::LogOut(LogOut::All) => log_out(app, &app.credentials.names()?),
        AuthAction::Status { json, check } => status(app, json, check),
    }
}

fn log_in(app: &AppContext, provider: Option<String>, key_on_stdin: bool) -> Result<Exit, CliError> {
    let provider = match provider {
        Some(provider) => provider,
        None => choose_provider(app, key_on_stdin)?,
    };
    let name = key_name(app, &provider)?;
    if name == "local" {
        return Err(CliError::usage("`local` is a local model server and needs no API key"));
    }
    if !app.settings.uses_keyring() {
        check_file_location(app)?;
    }
    let key = if key_on_stdin { from_stdin()? } else { prompt_for_key(&name)? };
    print_text(&clean(&keep(app, &name, &key, PRECEDENCE_NOTICE)?));
    Ok(Exit::Completed)
}

fn log_out(app: &AppContext, names: &[String]) -> Result<Exit, CliError> {
    let mut text = String::new();
    for name in names {
        let _ = match app.credentials.forget(name)? {
            Some(KeyStorage::Keyring) => writeln!(text, "deleted the key for {name} from the keyring"),
            Some(KeyStorage::File) => writeln!(text, "deleted the key for {name} from the file"),
            None => writeln!(text, "no key is saved for {name}"),
        };
        if let Some(variable) = app.settings.key_variable(name, &app.environment)
            && app.environment.get(&variable).is_some()
        {
            let _ = writeln!(text, "{variable} is still set, so aye uses it");
        }
    }
    if names.is_empty() {
        text.push_str("no keys are saved\n");
    }
    print_text(&clean(&text));
    Ok(Exit::Completed)
}

/// Prompts the user to choose a provider. Returns an error if stdin is not a terminal, or if the key is to be read from
/// it.
fn choose_provider(app: &AppContext, key_on_stdin: bool) -> Result<String, CliError> {
    let names: Vec<String> =
        app.settings.providers().into_iter().filter(|name| name != "local" && name != "openai-chat").collect();
    let names = names.into_iter().chain(services_with_key().map(str::to_owned)).collect::<Vec<_>>().join(", ");
    if key_on_stdin || !std::io::stdin().is_terminal() {
        return Err(CliError::usage("missing provider: cannot prompt, because stdin is not a terminal")
            .hint(format!("run `aye auth login PROVIDER` with one of {names}")));
    }
    let answer = secret_prompt::ask_openly(&format!("Provider ({names}): "));
    let answer = answer.map_err(|error| CliError::usage(format!("cannot read from the terminal: {error}")))?;
    answer.ok_or_else(|| CliError::usage("no provider was given; no key was saved").hint("run `aye auth login PROVIDER`"))
}

/// Returns the name under which a provider's key is saved. Errors never repeat text that looks like a key.
fn key_name(app: &AppContext, provider: &str) -> Result<String, CliError> {
    let long = provider.len() > 20 && provider.contains(|letter: char| letter.is_ascii_digit());
    match app.settings.key_name(provider) {
        Ok(name) => Ok(name.to_owned()),
        Err(_) if long || provider.len() > 40 || provider.starts_with("sk-") => {
            Err(CliError::usage("the provider looks like an API key")
                .hint("replace the key: your shell history contains it now")
                .hint("run `aye auth login PROVIDER` and type the key when prompted, or pass it on stdin with `--key-stdin`"))
        }
        Err(error) => Err(error.into()),
    }
}

fn prompt_for_key(name: &str) -> Result<String, CliError> {
    if !std::io::stdin().is_terminal() {
        return Err(CliError::usage("cannot prompt for the key: stdin is not a terminal")
            .hint("pass the key on stdin with `--key-stdin`"));
    }
    let typed = secret_prompt::ask(&format!("API key for {name} (hidden): "));
    let typed = typed.map_err(|error| CliError::usage(format!("cannot read from the terminal: {error}")))?;
    typed.ok_or_else(|| CliError::usage("no key was given; nothing was saved"))
}

fn from_stdin() -> Result<String, CliError> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(KEY_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| CliError::usage(format!("cannot read the key from stdin: {error}")))?;
    String::from_utf8(bytes).map_err(|_| CliError::usage("cannot read the key from stdin: it is not UTF-8 text"))
}

/// Source of a provider's key, and whether the provider accepts it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KeyStatus {
    provider: String,
    /// `environment`, `command`, `keyring`, `file`, `account` or `none`.
    source: &'static str,
    /// Environment variable, file or command from which the key comes.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    /// Last characters of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_with: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// Whether the provider accepts the key; absent if not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<bool>,
}

fn status(app: &AppContext, json: bool, check: bool) -> Result<Exit, CliError> {
    let mut names: Vec<String> = app.settings.providers();
    names.retain(|name| name != "openai-chat" && name != "local");
    names.extend(services_with_key().map(str::to_owned));
    for kept in app.credentials.names()? {
        if !names.contains(&kept) {
            names.push(kept);
        }
    }
    let mut standings = names.iter().map(|name| key_status(app, name)).collect::<Result<Vec<_>, _>>()?;
    if check {
        let here = ModelCatalog::new(app);
        // Search services have no free request.
        let is_asked = |standing: &&mut KeyStatus| {
            let is_search = services_with_key().any(|name| name == standing.provider);
            standing.source != "none" && standing.problem.is_none() && !is_search
        };
        let asked = standings.iter_mut().filter(is_asked);
        runtime()?.block_on(join_all(asked.map(|standing| check_key(&here, standing))));
    }
    let refused = standings.iter().any(|standing| standing.accepted == Some(false));
    if json {
        print_json(&standings);
    } else {
        print_text(&clean(&table(&standings)));
    }
    Ok(if refused { Exit::Authentication } else { Exit::Completed })
}

fn key_status(app: &AppContext, provider: &str) -> Result<KeyStatus, ConfigError> {
    let mut standing =
        KeyStatus { provider: provider.to_owned(), source: "none", place: None, ends_with: None, problem: None, accepted: None };
    let variable = app.settings.key_variable(provider, &app.environment);
    if let Some(key) = variable.as_deref().and_then(|variable| app.environment.get(variable)) {
        (standing.source, standing.place, standing.ends_with) = ("environment", variable.clone(), key_tail(key));
        return Ok(standing);
    }
    if let Some(command) = app.settings.key_command(provider) {
        (standing.source, standing.place) = ("command", Some(command.shell_line()));
        return Ok(standing);
    }
    match app.credentials.storage_of(provider)? {
        Some(KeyStorage::File) => {
            standing.source = "file";
            standing.place = app.credentials.file().map(|file| file.display().to_string());
        }
        Some(KeyStorage::Keyring) => standing.source = "keyring",
        None => {
            if app.settings.has_account(provider) {
                match ModelCatalog::new(app).provider(provider) {
                    Ok(_) => standing.source = "account",
                    Err(error) => standing.problem = Some(error.to_string()),
                }
            }
            standing.place = variable;
            return Ok(standing);
        }
    }
    match app.credentials.secret(provider) {
        Ok(key) => standing.ends_with = key.and_then(|key| key_tail(key.reveal())),
        Err(problem) => standing.problem = Some(problem),
    }
    Ok(standing)
}

fn key_tail(key: &str) -> Option<String> {
    let letters = key.chars().count();
    (letters >= SHOWN_OF).then(|| key.chars().skip(letters - MAX_SHOWN).collect())
}

/// Checks a key by requesting the provider's list of models, which is free of charge.
async fn check_key(here: &ModelCatalog, standing: &mut KeyStatus) {
    let spec = match here.provider(&standing.provider) {
        Ok(spec) => spec,
        Err(error) => {
            standing.problem = Some(error.to_string());
            return;
        }
    };
    match crate::llm::check_access(spec).await {
        Ok(()) => standing.accepted = Some(true),
        Err(failure) => {
            if matches!(failure.kind, FailureKind::Authentication | FailureKind::Permission | FailureKind::Billing) {
                standing.accepted = Some(false);
            }
            // The error of an account contains the command that renews it.
            let is_account = standing.source == "account";
            standing.problem = Some(if is_account { failure.problem().one_line() } else { failure.message });
        }
    }
}

fn table(standings: &[KeyStatus]) -> String {
    let widest = standings.iter().map(|standing| standing.provider.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for standing in standings {
        let place = standing.place.as_deref().unwrap_or_default();
        let from = match standing.source {
            "environment" => format!("from {place}"),
            "file" => format!("in the file {place}"),
            "command" => format!("from the command `{place}`"),
            "keyring" => "in the keyring".to_owned(),
            "account" => "your cloud account".to_owned(),
            _ if standing.problem.is_some() => "not set up".to_owned(),
            _ if place.is_empty() => format!("no key; run `aye auth login {}`", standing.provider),
            _ => format!("no key; run `aye auth login {}`, or set {place}", standing.provider),
        };
        let end = standing.ends_with.as_ref().map(|end| format!(" (…{end})")).unwrap_or_default();
        let accepted = match standing.accepted {
            Some(true) => ", accepted",
            Some(false) => ", rejected",
            None => "",
        };
        let problem = standing.problem.as_ref().map(|problem| format!(": {}", problem.replace('\n', " "))).unwrap_or_default();
        let _ = writeln!(text, "{:widest$}  {from}{end}{accepted}{problem}", standing.provider);
    }
    text
}
