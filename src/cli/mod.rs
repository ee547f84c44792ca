//! Entry point of the program, command-line interface and exit codes.

mod acp;
mod agents;
mod apply;
mod args;
mod auth;
mod config;
mod definition_files;
mod demo;
mod doctor;
mod exec;
mod hooks;
mod import;
mod interactive;
mod list_section;
mod manual;
mod mcp;
pub(crate) mod mcp_server;
mod memory;
mod models;
mod plugin;
mod policy;
mod review;
mod rewind;
pub(crate) mod screen;
mod serve;
pub(crate) mod session_ids;
mod sessions;
mod setup;
mod skills;
mod sync;
mod task;
mod tool;
mod update;
mod usage;

use crate::host::console::{fail, print_json, print_text, warn};
pub use crate::host::version::{Commit, parse_commit};

use crate::agent::Approver;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::nesting::Nesting;
use crate::host::options::{Answers, Common, SessionChoice};
use crate::host::profile;
use args::{CliAction, ExecPrompt, ParseExit};
use std::io::Write;
use std::process::ExitCode;

/// Runs the program. `commit` is the commit from which it was built.
pub fn main(commit: Option<Commit>) -> ExitCode {
    if crate::sys::process::is_helper() {
        crate::sys::process::supervise_main();
    }
    crate::host::crash::redact_panics();
    crate::sys::allocator::hide_from_others();
    crate::sys::allocator::share_heaps();
    crate::host::version::set_commit(commit);
    crate::host::crash::log_contained();
    crate::tui::set_contained_check(crate::policy::guard::contains_panics);
    let invocation = match args::parse(std::env::args_os(), Nesting::detect()) {
        Ok(invocation) => invocation,
        Err(ParseExit::Told(help)) => {
            let _ = help.print();
            return Exit::Completed.into();
        }
        Err(ParseExit::Usage(message)) => {
            let _ = write!(std::io::stderr(), "{}", crate::text::clean(&message));
            return Exit::Usage.into();
        }
    };
    if let Some(notice) = invocation.notice {
        warn(notice);
    }
    let common = match invocation.action {
        // For this command, `--policy` is the name of a preset.
        CliAction::Setup { .. } => Ok(invocation.common),
        _ => profile::with_profile(&invocation.common),
    };
    match common.and_then(|common| run_action(&common, invocation.action)) {
        Ok(exit) => exit.into(),
        Err(trouble) => {
            fail(&trouble);
            trouble.exit.into()
        }
    }
}

fn run_action(common: &Common, action: CliAction) -> Result<Exit, CliError> {
    match action {
        CliAction::Interactive { prompt, is_literal, session } => {
            let request = interactive::ScreenRequest::new(prompt, session);
            interactive::run(common, if is_literal { request } else { request.expand_command(common)? })
        }
        CliAction::Exec { prompt, takes_input, session, format, options } => {
            if let (ExecPrompt::Text(text), SessionChoice::New) = (&prompt, &session) {
                profile::refuse_name_as_prompt(common, text)?;
            }
            let request = exec::ExecRequest { prompt, takes_input, session, format, options, approver: Approver::Nobody };
            exec::run(common, request)
        }
        CliAction::Serve(door) => serve::run(common, &door),
        CliAction::Demo { answers } => demo::run(common, answers == Answers::Yes),
        CliAction::ToolList { json } => tool::list(&AppContext::find(common)?, common, json),
        CliAction::ToolManifest => {
            print_json(&crate::tools::manifest_schema());
            Ok(Exit::Completed)
        }
        CliAction::ToolSchema { name } => tool::schema(&AppContext::find(common)?, common, &name),
        CliAction::ToolPlan { name, arguments } => tool::plan(&AppContext::find(common)?, common, &name, &arguments),
        CliAction::ToolCall { name, arguments, json, answers } => {
            tool::call(&AppContext::find(common)?, common, &name, &arguments, json, answers)
        }
        CliAction::Policy(asked) => policy::run(common, asked),
        CliAction::Apply(request) => apply::run(common, &request),
        CliAction::Review(request) => review::run(common, &request),
        CliAction::Rewind(request) => rewind::run(common, &request),
        CliAction::Sessions(asked) => sessions::run(&AppContext::find(common)?, asked),
        CliAction::Usage(request) => usage::run(&AppContext::find(common)?, &request),
        CliAction::Auth(asked) => auth::run(&AppContext::find(common)?, asked),
        CliAction::Mcp(asked) => mcp::run(&AppContext::find(common)?, common, asked),
        CliAction::Hooks(asked) => hooks::run(&AppContext::find(common)?, common, asked),
        CliAction::Agents(asked) => agents::run(&AppContext::find(common)?, common, asked),
        CliAction::Skills(asked) => skills::run(&AppContext::find(common)?, common, asked),
        CliAction::Memory(asked) => memory::run(&AppContext::find(common)?, asked),
        CliAction::Plugin(asked) => plugin::run(&AppContext::find(common)?, asked),
        CliAction::Import(request) => import::run(common, &request),
        CliAction::ModelsUpdate(args) => models::update::run(&AppContext::find(common)?, &args),
        CliAction::Models { ask, json, filter } => models::run(&AppContext::find(common)?, ask, json, filter.as_deref()),
        CliAction::ConfigPath => config::path(&AppContext::find(common)?),
        CliAction::ConfigShow => config::show(&AppContext::find(common)?, common),
        CliAction::ConfigKeys => config::keys(),
        CliAction::ConfigSchema => config::schema(),
        CliAction::Acp => acp::run(common),
        CliAction::Setup { answers } => setup::run(common, answers == Answers::Yes),
        CliAction::Doctor { json } => doctor::run(common, json),
        CliAction::Task(asked) => task::run(common, asked),
        CliAction::Update(args) => update::run(&AppContext::find(common)?, &args),
        CliAction::Sync { drop: None, json } => sync::run(&AppContext::find(common)?, json),
        CliAction::Sync { drop: Some(service), json } => sync::drop_records(&AppContext::find(common)?, &service, json),
        CliAction::Completions { shell } => {
            print_text(&args::completions(shell));
            Ok(Exit::Completed)
        }
        CliAction::Man { dir } => manual::run(dir.as_deref()),
    }
}
