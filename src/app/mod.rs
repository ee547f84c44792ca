//! The program: command line, wiring and exit codes.

mod acp;
mod allowed;
mod auth;
mod backstage;
mod bench;
mod cli;
mod configuration;
mod crash;
mod demo;
mod desk;
mod doctor;
mod editor;
mod exec;
mod exit;
mod farewell;
mod git;
mod greeting;
mod held;
mod here;
mod interactive;
mod layers;
mod local;
mod logging;
mod look;
mod look_up;
mod manual;
mod mcp;
mod misnamed;
mod models;
mod models_list;
mod offered;
mod opening;
mod past;
mod pick;
mod piped;
mod place;
mod policy;
mod project;
mod query_service;
mod redaction;
mod reload;
mod retention;
mod rewind;
mod rules;
mod serve;
mod servers;
mod session;
mod sessions;
mod setup;
mod since;
mod standing;
mod storage;
mod take_over;
mod theme;
mod tool;
mod toolchain;
mod toolset;
mod trouble;
mod unfinished;
mod version;
mod worktree;

pub use version::{Commit, commit_in};

use crate::agent::Approver;
use crate::store::Store;
use cli::{Action, Answers, Common, Nesting, Stop};
use exit::Exit;
use place::Place;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use trouble::Trouble;

/// The signal number on all Unix systems.
const SIGINT: i32 = 2;
/// Number of worker threads; the screen uses the main thread.
const WORKERS: usize = 2;

/// Runs the program. `commit`: the commit of the build.
pub fn main(commit: Option<Commit>) -> ExitCode {
    if crate::sys::process::is_helper() {
        crate::sys::process::supervise_main();
    }
    crash::redact_panics();
    crate::sys::allocator::hide_from_others();
    crate::sys::allocator::share_heaps();
    version::set(commit);
    crash::log_contained();
    crate::tui::spare_contained(crate::policy::guard::contains_panics);
    let invocation = match cli::parse(std::env::args_os(), Nesting::of_process()) {
        Ok(invocation) => invocation,
        Err(Stop::Told(help)) => {
            let _ = help.print();
            return Exit::Completed.into();
        }
        Err(Stop::Usage(message)) => {
            let _ = write!(std::io::stderr(), "{}", crate::text::clean(&message));
            return Exit::Usage.into();
        }
    };
    match act(&invocation.common, invocation.action) {
        Ok(exit) => exit.into(),
        Err(trouble) => {
            fail(&trouble.message);
            trouble.exit.into()
        }
    }
}

fn act(common: &Common, action: Action) -> Result<Exit, Trouble> {
    match action {
        Action::Interactive { prompt, session } => interactive::run(common, interactive::Request::new(prompt, session)),
        Action::Exec { prompt, takes_input, session, format } => {
            let request = exec::Request { prompt, takes_input, session, format, approver: Approver::Nobody };
            exec::run(common, request)
        }
        Action::Serve(door) => serve::run(common, &door),
        Action::Demo { answers } => demo::run(common, answers == Answers::Yes),
        Action::ToolList { json } => tool::list(&Place::find(common)?, common, json),
        Action::ToolManifest => {
            say_json(&crate::tools::manifest_schema());
            Ok(Exit::Completed)
        }
        Action::ToolSchema { name } => tool::schema(&Place::find(common)?, common, &name),
        Action::ToolPlan { name, arguments } => tool::plan(&Place::find(common)?, common, &name, &arguments),
        Action::ToolCall { name, arguments, json, answers } => {
            tool::call(&Place::find(common)?, common, &name, &arguments, json, answers)
        }
        Action::Policy(asked) => policy::run(common, asked),
        Action::Rewind(request) => rewind::run(common, &request),
        Action::Sessions(asked) => sessions::run(&Place::find(common)?, asked),
        Action::Auth(asked) => auth::run(&Place::find(common)?, asked),
        Action::Mcp(asked) => mcp::run(&Place::find(common)?, common, asked),
        Action::Models { ask, json, filter } => models_list::run(&Place::find(common)?, ask, json, filter.as_deref()),
        Action::ConfigPath => configuration::path(&Place::find(common)?),
        Action::ConfigShow => configuration::show(&Place::find(common)?, common),
        Action::ConfigSchema => configuration::schema(),
        Action::Acp => acp::run(common),
        Action::Setup { answers } => setup::run(common, answers == Answers::Yes),
        Action::Doctor { json } => doctor::run(common, json),
        Action::Completions { shell } => {
            say(&cli::completions(shell));
            Ok(Exit::Completed)
        }
        Action::Man { dir } => manual::run(dir.as_deref()),
    }
}

/// Opens the store, and reports at once if it was damaged.
fn open_store(place: &Place) -> Result<Store, Trouble> {
    let store = Store::open(&place.directories.data)?;
    for notice in store.notices() {
        warn(notice);
    }
    Ok(store)
}

fn runtime() -> Result<tokio::runtime::Runtime, Trouble> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(|error| Trouble::failed(format!("cannot start: {error}")))
}

/// Starts the log at the level of `-v`, unless AYE_LOG sets a filter.
fn start_log(place: &Place, verbosity: u8) -> logging::Log {
    let by_flag = match verbosity {
        0 => None,
        1 => Some("aye=info"),
        2 => Some("aye=debug"),
        3.. => Some("aye=trace"),
    };
    let (log, problem) = logging::start(
        &place.directories.data,
        place.environment.get("AYE_LOG").or(by_flag),
        place.settings.retention.logs_bytes,
    );
    if let Some(message) = problem {
        warn(&message);
    }
    log
}

/// Prints a notice on stderr, without control characters.
fn warn(message: &str) {
    let message = message.strip_prefix("aye ").map_or_else(|| format!(": {message}"), |rest| format!(" {rest}"));
    to_stderr(&format!("aye{message}"));
}

/// Prints the reason of a failure on stderr, as `error: …`.
fn fail(message: &str) {
    to_stderr(&format!("error: {message}"));
}

fn to_stderr(message: &str) {
    let message = crate::text::clean(message).into_owned();
    let width = std::io::stderr().is_terminal().then(crate::tui::columns).flatten();
    let message = width.map_or_else(|| message.clone(), |width| in_rows(&message, width.into()));
    let _ = writeln!(std::io::stderr(), "{message}");
}

/// Wraps a message between words. A line with a word that is too long for a row is left to the terminal, which keeps it
/// a single line.
fn in_rows(message: &str, width: usize) -> String {
    let mut rows = Vec::new();
    for line in message.split('\n') {
        if line.split(' ').any(|word| crate::text::width(word) > width) {
            rows.push(line);
        } else {
            rows.extend(crate::text::wrap(line, width).into_iter().map(|range| &line[range]));
        }
    }
    rows.join("\n")
}

/// Prints output on stdout. A closed stdout is ignored.
fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
    let _ = std::io::stdout().flush();
}

/// Prints a value as one line of JSON.
fn say_json(value: &impl serde::Serialize) {
    let _ = crate::headless::lines::write(&mut std::io::stdout(), value);
    let _ = std::io::stdout().flush();
}

#[cfg(test)]
mod tests {
    use super::in_rows;

    #[test]
    fn what_is_said_on_a_terminal_breaks_between_words_and_no_name_is_torn() {
        let said = "aye: /home/me/.config/aye/policy.toml line 3: unknown key\n    3 \u{2502} allowd = [1]";
        assert_eq!(in_rows(said, 40), "aye: /home/me/.config/aye/policy.toml\nline 3: unknown key\n    3 \u{2502} allowd = [1]");
        assert_eq!(in_rows("at /a/very/long/name of a file", 10), "at /a/very/long/name of a file");
    }
}
