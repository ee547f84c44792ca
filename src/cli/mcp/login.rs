//! `aye mcp login` and `aye mcp logout`: sign in to a server in the browser, and save or delete its tokens.

use crate::host::api_keys::check_file_location;
use crate::host::console::{print_text, warn};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::mcp_servers::specs::specs;
use crate::host::mcp_servers::token_store::vault;
use crate::host::options::Common;
use crate::host::project::ProjectConfig;
use crate::host::startup::runtime;
use crate::mcp::Spec;
use crate::mcp::auth::{LogIn, sign_in};
use crate::policy::redact::names_a_secret;
use crate::ports::BoxFuture;
use crate::protocol::Problem;
use crate::sys::opener::{Address, Desktop, Opening};
use crate::text::clean;
use std::collections::BTreeSet;

/// Sign-in page. Its URL is printed and, if possible, opened in a browser.
struct SignInPage<'a> {
    app: &'a AppContext,
    server: &'a str,
    no_browser: bool,
}

impl LogIn for SignInPage<'_> {
    fn visit<'b>(&'b self, address: &'b str) -> BoxFuture<'b, ()> {
        Box::pin(async move {
            let host = url::Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
            let text = format!("Sign in to `{}` at {host}:\n\n  {address}\n\n", self.server);
            print_text(&clean(&text));
            let opened = match Address::parse(address).filter(|_| !self.no_browser) {
                Some(address) => self.desktop().perform(&Opening::Visit(address)).await.is_ok(),
                None => false,
            };
            let how = if opened { "Opened it in your browser" } else { "Open the address in a browser on this machine" };
            print_text(&format!("{how}. Waiting up to 5 minutes; press ctrl+c to cancel.\n"));
        })
    }
}

impl SignInPage<'_> {
    /// Returns access to the desktop for programs whose environment must not contain secrets.
    fn desktop(&self) -> Desktop {
        let secret: BTreeSet<String> = self
            .app
            .environment
            .variables()
            .map(|(name, _)| name.to_owned())
            .filter(|name| names_a_secret(name))
            .chain(self.app.key_variables())
            .collect();
        let names: Vec<String> = secret.into_iter().collect();
        Desktop::find(&self.app.workspace, &names, &|_| false)
    }
}

pub(crate) fn log_in(app: &AppContext, common: &Common, name: &str, no_browser: bool) -> Result<Exit, CliError> {
    let spec = find_server(app, common, name)?;
    if !app.settings.uses_keyring() {
        check_file_location(app)?;
    }
    let shown = SignInPage { app, server: &spec.name, no_browser };
    let done = runtime()?.block_on(sign_in(&spec, &vault(app), &shown));
    let done = done.map_err(|why| {
        let problem = Problem::new(format!("cannot sign in to `{name}`")).because(&why);
        CliError::new(Exit::Authentication, Problem { hints: why.hints, ..problem })
    })?;
    let scopes = if done.scopes.is_empty() { String::new() } else { format!(" for {}", done.scopes.join(" ")) };
    let lasts = if done.lasts { "" } else { "; the sign-in cannot be renewed, so sign in again when it expires" };
    print_text(&clean(&format!("signed in to `{name}`{scopes}{lasts}\n")));
    Ok(Exit::Completed)
}

pub(crate) fn log_out(app: &AppContext, name: &str) -> Result<Exit, CliError> {
    let text = if forget(app, name)? {
        format!("deleted the tokens for `{name}`; its authorization server may still list aye\n")
    } else {
        format!("no tokens are saved for `{name}`\n")
    };
    print_text(&clean(&text));
    Ok(Exit::Completed)
}

/// Deletes the tokens of a server. Returns whether any tokens were saved.
pub(super) fn forget(app: &AppContext, name: &str) -> Result<bool, CliError> {
    let kept = app.credentials.server_token_names(name)?;
    for name in &kept {
        app.credentials.forget(name)?;
    }
    Ok(!kept.is_empty())
}

/// Finds a server by name. Disabled servers are included, except for a project's server that has not been approved.
pub(super) fn find_server(app: &AppContext, common: &Common, name: &str) -> Result<Spec, CliError> {
    let project = ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust);
    let (specs, problems) = specs(app, Some(&project));
    for problem in problems.iter().filter(|problem| problem.contains(&format!("`{name}`"))) {
        warn(problem);
    }
    let spec = specs.into_iter().find(|spec| spec.name == name).ok_or_else(|| {
        let problem = Problem::new(format!("unknown MCP server `{name}`")).hint("run `aye mcp list` to list the servers");
        CliError::usage(Problem { excerpt: project.ignored_files_notice().into_iter().collect(), ..problem })
    })?;
    match &spec.off {
        Some(why) if spec.of_project => Err(CliError::usage(format!("server `{name}` is off: {why}"))),
        Some(_) | None => Ok(spec),
    }
}
