//! `aye setup` and `/setup`: let the user choose a model and which actions need approval, in panels, in line mode, or
//! by options. Existing files are backed up.

mod screen;

use crate::config::{EditResult, with_default_model};
use crate::host::console::{fail, is_yes, print_text};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::Common;
use crate::host::policy_templates::Preset;
use crate::host::setup::approvals::{self, ApprovalPreset};
use crate::host::startup::runtime;
use crate::sys::secret_prompt;
use std::io::{BufRead, IsTerminal};

const NEXT: &str = "next: run `aye` to start, or `aye doctor` to check the installation\n";
/// Menu answer that adds an API key.
const KEY: &str = "key";

/// The user's choices. A step that was skipped is `None`.
struct Chosen {
    model: Option<String>,
    preset: Option<Preset>,
    approvals: Option<&'static ApprovalPreset>,
    /// Whether to check for a new list of models every day.
    looks_daily: bool,
}

/// Runs the setup. If `yes` is set, the user is not prompted. During setup, `--policy` takes the name of a preset, and
/// `-m` specifies the model.
pub(crate) fn run(common: &Common, yes: bool) -> Result<Exit, CliError> {
    let preset = common.policy.as_ref().map(|given| find_preset(&given.to_string_lossy())).transpose()?;
    // Here, `--policy` does not name a file.
    let app = AppContext::find(&Common { policy: None, ..common.clone() })?;
    let asks_all = preset.is_none() && common.model.is_none();
    let chosen = if yes {
        Chosen { model: common.model.clone(), preset: preset.or(Some(Preset::Ask)), approvals: None, looks_daily: false }
    } else if !std::io::stdin().is_terminal() {
        return Err(CliError::usage("setup needs a terminal").hint("run `aye setup --yes` to use the options without asking"));
    } else if asks_all && !crate::cli::screen::is_plain(common, &app) {
        return screen::run(common, &app);
    } else {
        let model = common.model.clone().map_or_else(|| ask_for_model(&app), |model| Ok(Some(model)))?;
        let approvals = if preset.is_none() { ask_for_approvals(&app)? } else { None };
        let looks_daily = asks_all && ask_for_daily_check(&app)?;
        Chosen { model, preset, approvals, looks_daily }
    };
    let given = preset.is_some();
    if let Some(model) = &chosen.model {
        print_lines(&write_model(&app, model)?);
    }
    if let Some(preset) = chosen.preset {
        print_lines(&crate::host::setup::write::preset(&app, preset, given || !yes)?);
    }
    let mut values: Vec<crate::host::setup::write::Setting<'_>> = Vec::new();
    values.extend(chosen.approvals.into_iter().flat_map(crate::host::setup::write::approvals));
    if chosen.looks_daily {
        values.extend(crate::host::setup::write::daily_look());
    }
    if !values.is_empty() {
        print_lines(&crate::host::setup::write::settings(&app, &values)?);
    }
    crate::host::setup::write::record_setup_shown(&app);
    print_lines(&crate::host::other_agents::describe_found(&app));
    print_text(NEXT);
    Ok(Exit::Completed)
}

fn print_lines(lines: &[String]) {
    for line in lines {
        print_text(&format!("{}\n", crate::text::reveal(line)));
    }
}

fn find_preset(name: &str) -> Result<Preset, CliError> {
    crate::host::setup::presets::from_name(name).map_err(CliError::usage)
}

fn ask_for_model(app: &AppContext) -> Result<Option<String>, CliError> {
    print_text("Model\n");
    let found = runtime()?.block_on(crate::host::setup::detect::models(app));
    for one in &found {
        print_text(&format!("  found: {}, for example {}\n", crate::text::reveal(&one.by), crate::text::reveal(&one.model)));
    }
    if found.is_empty() {
        print_text("  no API key and no local model server found; set OPENAI_BASE_URL to use any OpenAI-compatible server\n");
    }
    let suggested = suggested_model(app);
    let usual = suggested.as_ref().map_or(String::new(), |name| format!(", for example {name}"));
    loop {
        let question = format!(
            "Enter PROVIDER/NAME{usual}, or `{KEY}` to add an API key. Press Enter to keep the current model.\nDefault model: "
        );
        let Some(answer) = line(&question)? else { return Ok(None) };
        if answer == KEY {
            match ask_for_key(app) {
                Ok(Some(model)) => return Ok(Some(model)),
                Ok(None) => {}
                Err(error) => fail(&error),
            }
            continue;
        }
        match answer.split_once('/') {
            Some((provider, name)) if !provider.is_empty() && !name.is_empty() => return Ok(Some(answer)),
            // The answer may be a pasted key, so it is not repeated.
            _ if crate::tui::provider_of_key(&answer).is_some() => {
                print_text(&format!(
                    "That looks like an API key, and it is now visible on the screen. Use `{KEY}` to enter one hidden.\n"
                ));
            }
            _ => print_text(&format!("invalid model `{}`: must be PROVIDER/NAME\n", crate::text::reveal(&answer))),
        }
    }
}

/// Asks the user whether to check for a new list of models every day.
fn ask_for_daily_check(app: &AppContext) -> Result<bool, CliError> {
    if app.settings.model_list().catalogue_url.is_some() {
        return Ok(false);
    }
    let question = format!(
        "\nModel catalogue\naye has a built-in list of models with context windows and prices. It can check once a day whether the public \
         list {} has changed, and notify you. Nothing is updated without your approval.\nCheck daily? [y/N] ",
        crate::host::catalogue_update::PUBLIC_LIST
    );
    Ok(line(&question)?.is_some_and(|answer| is_yes(&answer)))
}

/// Reads an API key without echoing it, and saves it. Returns the default model of the key's provider.
fn ask_for_key(app: &AppContext) -> Result<Option<String>, CliError> {
    let no_terminal = |error| CliError::usage(format!("cannot read from the terminal: {error}"));
    let Some(key) = secret_prompt::ask("API key (hidden; press Enter for none): ").map_err(no_terminal)? else {
        return Ok(None);
    };
    let provider = match crate::tui::provider_of_key(&key) {
        Some(provider) => provider.to_owned(),
        None => match secret_prompt::ask_openly("Provider of the key (anthropic, openai, gemini, …): ").map_err(no_terminal)? {
            Some(provider) => provider,
            None => return Ok(None),
        },
    };
    print_text(&format!("{} characters, a key for {}\n", key.chars().count(), crate::text::reveal(&provider)));
    print_lines(&crate::host::setup::write::key(app, &provider, &key)?);
    Ok(app.settings.provider_default_model(&provider).map(|model| format!("{provider}/{model}")))
}

/// Returns the model that would currently be used by default.
fn suggested_model(app: &AppContext) -> Option<String> {
    app.settings.choose_model(None, &app.environment, &app.credentials).ok().map(|choice| choice.name())
}

fn ask_for_approvals(app: &AppContext) -> Result<Option<&'static ApprovalPreset>, CliError> {
    print_text("\nWhat should aye ask about?\n");
    for choice in approvals::choices() {
        let suggested = if choice.suggested { "  (suggested)" } else { "" };
        print_text(&format!("  {}: {}{suggested}\n    {}\n", choice.name, choice.title, choice.words));
    }
    if app.directories.config.join("policy.toml").exists() {
        print_text("  A stricter rule in your policy.toml takes precedence.\n");
    }
    loop {
        let Some(answer) = line("Approvals (command, effects or auto), or Enter to keep the current setting: ")? else {
            return Ok(None);
        };
        match approvals::from_name(&answer) {
            Ok(answer) => return Ok(Some(answer)),
            Err(trouble) => print_text(&format!("{}\n", crate::text::reveal(&trouble))),
        }
    }
}

/// Prompts for a line of text. Returns `None` if the line is empty or the input has ended.
fn line(question: &str) -> Result<Option<String>, CliError> {
    print_text(question);
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| CliError::usage(format!("cannot read your answer: {error}")))?;
    Ok(Some(answer.trim().to_owned()).filter(|answer| !answer.is_empty()))
}

/// Writes the model to the configuration unless one is already set.
fn write_model(app: &AppContext, model: &str) -> Result<Vec<String>, CliError> {
    let file = app.directories.config_file();
    let old = crate::host::setup::write::read(&file)?;
    let name = file.display();
    match with_default_model(&old, model).map_err(|error| CliError::usage(format!("`{name}`: {error}")))? {
        EditResult::Set(set) if set == model => Ok(vec![format!("{name} already uses {model}")]),
        EditResult::Set(set) => Ok(vec![format!("unchanged: {name} uses {set}; change `model.default` there")]),
        EditResult::New(text) => {
            let backup = crate::host::policy_templates::write(&app.directories.config, &file, &text, true, !old.is_empty())?;
            Ok(crate::host::setup::write::written_lines(&file, backup.as_deref()))
        }
    }
}
