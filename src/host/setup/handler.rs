//! Backend for first-time setup on the screen, which detects, tests and saves the user's choices.

use super::{approvals, detect, write};
use crate::config::{Environment, NewValue};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::models::ModelCatalog;
use crate::host::nesting::Nesting;
use crate::llm;
use crate::ports::{Model, ModelRequest, Models};
use crate::protocol::{
    Failure, FailureKind, Message, MessageId, ModelAddress, Part, Problem, Role, SetupEvent, SetupRequest, TaskId, TestOutcome,
};
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Provider name used for the user's own server.
const CUSTOM: &str = "custom";
/// Environment variable that contains a key while it is being tested.
const TRIED_KEY: &str = "AYE_SETUP_KEY";
/// Timeout for a test request.
const TIMEOUT: Duration = Duration::from_secs(40);
/// Limit on the output of a test request, in tokens. Reasoning models use part of it for reasoning.
const ANSWER_TOKENS: u64 = 256;
/// Maximum number of attempts per test. A server may reject the first form of a request but accept another one.
const ATTEMPTS: usize = 3;

pub(crate) async fn answer(app: &AppContext, asked: SetupRequest) -> SetupEvent {
    let failed = |problem: Problem| SetupEvent::Failed { problem };
    // A command that aye runs could imitate the user's keystrokes.
    if Nesting::detect() == Nesting::InsideAye {
        return failed("a command that aye runs (AYE=1) cannot change the setup".into());
    }
    // Earlier steps of the setup may have changed the settings.
    let app = match app.reload(&[]) {
        Ok(app) => app,
        Err(error) => return failed(error.into_problem()),
    };
    match asked {
        SetupRequest::Look => SetupEvent::Found(detect::detect_all(&app).await),
        SetupRequest::Test { reach, number } => SetupEvent::Tested { number, outcome: test(&app, &reach).await },
        SetupRequest::Take { reach } => Box::pin(apply(app, reach)).await.unwrap_or_else(|error| failed(error.into_problem())),
        SetupRequest::End { approvals, theme, looks_daily } => {
            let end = move || finish(&app, approvals.as_deref(), theme.as_deref(), looks_daily);
            let ended = tokio::task::spawn_blocking(end).await;
            match ended {
                Ok(Ok(told)) => told,
                Ok(Err(error)) => failed(error.into_problem()),
                Err(error) => failed(error.to_string().into()),
            }
        }
    }
}

fn finish(app: &AppContext, chosen: Option<&str>, theme: Option<&str>, looks_daily: bool) -> Result<SetupEvent, CliError> {
    write::record_setup_shown(app);
    let mut values: Vec<write::Setting<'_>> = Vec::new();
    let answer = chosen.map(approvals::from_name).transpose().map_err(CliError::usage)?;
    if let Some(answer) = answer {
        values.extend(write::approvals(answer));
    }
    if let Some(theme) = theme {
        values.push((&["ui", "theme"], NewValue::Text(theme)));
    }
    if looks_daily {
        values.extend(write::daily_look());
    }
    let lines = if values.is_empty() { Vec::new() } else { write::settings(app, &values)? };
    Ok(SetupEvent::Ended { mode: answer.map(|answer| answer.mode), lines })
}

/// Returns the environment with this key and server, and the complete name of the model.
async fn with_reach(app: &AppContext, reach: &ModelAddress) -> Result<(AppContext, String), String> {
    let pair = |name: &str, value: &str| (format!("providers.{CUSTOM}.{name}"), value.to_owned());
    let mut set = Vec::new();
    if let Some(address) = &reach.address {
        set = vec![pair("api", "openai-chat"), pair("base_url", address), pair("api_key_env", TRIED_KEY)];
    }
    let mut app = app.reload(&set).map_err(|error| error.to_string())?;
    let provider =
        if reach.address.is_some() { CUSTOM } else { reach.model.split_once('/').map_or("", |(provider, _)| provider) };
    if let Some(key) = &reach.key {
        let variable = app.settings.key_variable(provider, &app.environment).unwrap_or_default();
        let others = app.environment.variables().map(|(name, value)| (name.to_owned(), value.to_owned()));
        app.environment = Environment::from_pairs(others.chain([(variable, key.0.clone())]).collect::<Vec<_>>());
    }
    let name = match (&reach.address, reach.model.as_str()) {
        (None, name) => name.to_owned(),
        (Some(address), "") => format!("{CUSTOM}/{}", first_listed(&app, address).await?),
        (Some(_), name) => format!("{CUSTOM}/{name}"),
    };
    Ok((app, name))
}

/// Returns the first model listed by a server.
async fn first_listed(app: &AppContext, address: &str) -> Result<String, String> {
    let otherwise = "add the model name after the address";
    let spec = ModelCatalog::new(app).provider(CUSTOM).map_err(|error| error.to_string())?;
    let listed = tokio::time::timeout(TIMEOUT, llm::list_models(spec)).await;
    let listed = listed.map_err(|_| format!("`{address}` did not list its models in time; {otherwise}"))?;
    let listed = listed.map_err(|failure| format!("{}; {otherwise}", describe_failure(&failure)))?;
    let first = listed.into_iter().next();
    first.map(|told| told.id).ok_or_else(|| format!("`{address}` lists no models; {otherwise}"))
}

fn describe_failure(failure: &Failure) -> String {
    failure.problem().one_line()
}

async fn test(app: &AppContext, reach: &ModelAddress) -> TestOutcome {
    let failed = |message: String| {
        // A provider may repeat the key in its error.
        let message = match &reach.key {
            Some(key) if !key.0.is_empty() => message.replace(&key.0, "[key]"),
            _ => message,
        };
        TestOutcome::Failed { message }
    };
    let (app, name) = match with_reach(app, reach).await {
        Ok(tried) => tried,
        Err(message) => return failed(message),
    };
    let model = match ModelCatalog::new(&app).open(&name) {
        Ok(model) => model,
        Err(failure) => return failed(describe_failure(&failure)),
    };
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        let began = Instant::now();
        match tokio::time::timeout(TIMEOUT, wait_for_first_text(model.as_ref())).await {
            Err(_) => return failed(format!("no response within {} s", TIMEOUT.as_secs())),
            Ok(Ok(())) => return TestOutcome::Answered { model: name, latency_ms: began.elapsed().as_millis() as u64 },
            Ok(Err(failure)) => {
                let of_request =
                    matches!(failure.kind, FailureKind::InvalidRequest | FailureKind::NotFound | FailureKind::ContextTooLong);
                last = describe_failure(&failure);
                if !(of_request && failure.retryable) {
                    break;
                }
            }
        }
    }
    failed(last)
}

/// Waits until the model has responded with any text.
async fn wait_for_first_text(model: &dyn Model) -> Result<(), Failure> {
    let message = Message {
        message_id: MessageId::new("setup"),
        role: Role::User,
        content: vec![Part::Text { text: "Say ok.".to_owned() }],
        token_count: 4,
        task_id: TaskId::new("setup"),
        step_id: None,
        timestamp: jiff::Timestamp::now(),
    };
    let mut stream = model.stream(ModelRequest {
        system: Arc::from("Answer with one word."),
        messages: vec![Arc::new(message)],
        tools: Arc::from([]),
        max_output_tokens: ANSWER_TOKENS,
        images: None,
        effort: None,
    });
    match stream.next().await {
        Some(delta) => delta.map(drop).map_err(|error| error.failure),
        None => Err(Failure::new(FailureKind::CutStream, "the response ended before any text", "")),
    }
}

/// Saves the user's choices. The key is saved first, so that the settings are complete as soon as they are written.
async fn apply(app: AppContext, reach: ModelAddress) -> Result<SetupEvent, CliError> {
    let (mut tried, name) = with_reach(&app, &reach).await.map_err(CliError::usage)?;
    tried.environment = app.environment.clone();
    let taken = tokio::task::spawn_blocking(move || {
        let mut lines = Vec::new();
        let provider = name.split_once('/').map_or("", |(provider, _)| provider);
        if let Some(key) = &reach.key {
            lines = write::key(&tried, provider, &key.0)?;
        }
        let default: (&[&str], NewValue<'_>) = (&["model", "default"], NewValue::Text(&name));
        let model = name.split_once('/').map_or("", |(_, model)| model);
        let mut values = vec![default];
        if let Some(address) = &reach.address {
            values.extend([
                (&["providers", CUSTOM, "api"][..], NewValue::Text("openai-chat")),
                (&["providers", CUSTOM, "base_url"][..], NewValue::Text(address)),
                (&["providers", CUSTOM, "models"][..], NewValue::OneText(model)),
            ]);
        }
        lines.extend(write::settings(&app, &values)?);
        Ok(SetupEvent::Taken { model: name.clone(), lines })
    });
    taken.await.unwrap_or_else(|error| Err(CliError::failed(error.to_string())))
}
