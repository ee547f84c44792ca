//! `aye doctor`: checks the installation and suggests fixes. It changes nothing except for creating the data directory,
//! as every start of aye does.

use super::policy;
use crate::config::{Directories, Environment, KeyPlace, ProviderModel};
use crate::host::console::{print_json, print_text};
use crate::host::context::AppContext;
use crate::host::disk_usage::{UsageEntry, usage};
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::language_servers::{FoundServer, NOT_IN_PATH, find_servers};
use crate::host::models::ModelCatalog;
use crate::host::options::Common;
use crate::host::policy_layers::Policy;
use crate::host::project::ProjectConfig;
use crate::host::query::keymap_watch;
use crate::host::sandbox_host::{SandboxHost, tier};
use crate::host::session_services::{ServiceState, service_states};
use crate::policy::{Approve, Sandbox};
use crate::protocol::{Problem, SandboxTier, size};
use crate::store::{Health, OutboxSink, health};
use crate::sys::http::count_authorities;
use crate::sys::process::Helper;
use crate::sys::sandbox::{self, Kernel, Probe, UserNamespaces};
use crate::text::clean;
use crate::tools::undecided_use;
use crate::tui::key_problems;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::Path;

/// Maximum number of workspace copies with undecided changes that are listed.
const UNDECIDED: usize = 10;

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Good,
    /// Something does not work, or only partly.
    Missing,
    /// Information that does not indicate a problem.
    Note,
}

#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    state: State,
    says: String,
    /// Suggested fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Debug, Serialize)]
struct DoctorReport {
    ok: bool,
    /// Sandbox tier in which commands run.
    tier: SandboxTier,
    checks: Vec<Check>,
    /// Disk usage and its limits.
    storage: Vec<UsageEntry>,
}

impl Check {
    fn good(name: &'static str, says: impl Into<String>) -> Self {
        Self { name, state: State::Good, says: says.into(), fix: None }
    }

    fn missing(name: &'static str, says: impl Into<String>, fix: Option<&str>) -> Self {
        Self { name, state: State::Missing, says: says.into(), fix: fix.map(str::to_owned) }
    }

    fn from_problem(name: &'static str, problem: Problem) -> Self {
        let fix = Some(problem.hints.join("; ")).filter(|fix| !fix.is_empty());
        Self { name, state: State::Missing, says: problem.detailed_message(), fix }
    }

    fn note(name: &'static str, says: impl Into<String>) -> Self {
        Self { name, state: State::Note, says: says.into(), fix: None }
    }
}

pub(crate) fn run(common: &Common, json: bool) -> Result<Exit, CliError> {
    let environment = Environment::from_process();
    let directories = Directories::find(&environment)?;
    let app = AppContext::find(common);
    let workspace = || std::env::current_dir().map(|directory| vec![directory]).unwrap_or_default();
    let roots = app.as_ref().map_or_else(|_| workspace(), |app| app.roots.clone());
    let probe = sandbox::probe(&Helper::default().program, &roots, &directories.data);
    let tier = tier(probe.tier);
    let mut checks = vec![sandbox(tier, &probe)];
    checks.extend(kernel(&Kernel::detect()));
    match &app {
        Ok(app) => {
            let policy = policy::load_policy(app, common);
            checks.push(configuration(&directories));
            checks.extend(project_configuration(app, common));
            checks.extend(certificates(app));
            checks.extend(keys(app));
            checks.push(check_layers(&policy));
            checks.extend(policy.iter().map(|policy| approvals(app, policy, common, tier)));
            checks.extend(policy.iter().flat_map(|policy| unenforced_rules(app, policy, &probe)));
            checks.push(tools(app, common));
            checks.extend(language_servers(app, common, tier));
            checks.extend(service_states(app).into_iter().map(service));
        }
        Err(error) => {
            let fix = "correct the configuration, then run `aye doctor` again";
            let check = Check::from_problem("configuration", Problem::joined(error.problems.clone()));
            checks.push(Check { fix: check.fix.or_else(|| Some(fix.to_owned())), ..check });
            checks.push(Check::note("policy", "not checked, because the configuration is invalid"));
            checks.push(Check::note("model", "not checked, because the configuration is invalid"));
        }
    }
    checks.push(data(&directories.data));
    checks.push(store(&directories.data));
    let storage = app.as_ref().map(usage).unwrap_or_default();
    checks.extend(storage.iter().map(disk_usage));
    checks.extend(undecided_layers(&directories.data));
    checks.extend(app.as_ref().ok().map(|app| model(app, common)));
    checks.extend(app.as_ref().ok().and_then(|app| summary_model(app, common)));
    checks.push(terminal(&environment));
    let ok = checks.iter().all(|check| check.state != State::Missing);
    if json {
        print_json(&DoctorReport { ok, tier, checks, storage });
    } else {
        print_text(&as_text(&checks));
    }
    Ok(if ok { Exit::Completed } else { Exit::Failed })
}

/// Formats one line for each check, followed by a line with the fix if there is one.
fn as_text(checks: &[Check]) -> String {
    let widest = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for check in checks {
        let mark = match check.state {
            State::Good => "✓",
            State::Missing => "✗",
            State::Note => "·",
        };
        let says = clean(&check.says).replace('\n', " ");
        let _ = writeln!(text, "{mark} {:widest$}  {says}", check.name);
        if let Some(fix) = &check.fix {
            let _ = writeln!(text, "  {:widest$}  → {}", "", clean(fix));
        }
    }
    text
}

/// Checks the sandbox tier, as determined by a probe.
fn sandbox(tier: SandboxTier, probe: &Probe) -> Check {
    let means = match tier {
        SandboxTier::Preview => "commands are sandboxed, and their changes can be previewed",
        SandboxTier::Guarded => "commands are sandboxed, but their changes cannot be previewed",
        SandboxTier::LandlockOnly => "commands are restricted by Landlock path rules only, and always need approval",
        SandboxTier::Bare => "commands are not sandboxed, and always need approval",
    };
    let says = format!("{}: {means}", tier.as_str());
    if tier == SandboxTier::Preview {
        return Check::good("sandbox", says);
    }
    Check::missing("sandbox", says, Some(&probe.missing.join("; ")))
}

/// Checks the kernel features required by the sandbox.
fn kernel(kernel: &Kernel) -> Vec<Check> {
    if !cfg!(target_os = "linux") {
        return Vec::new();
    }
    let users = match kernel.user_namespaces {
        UserNamespaces::Allowed => Check::good("user namespaces", "allowed"),
        UserNamespaces::Off => Check::missing(
            "user namespaces",
            "off",
            Some("run `sudo sysctl user.max_user_namespaces=10000`; in a container, use a profile that allows user namespaces"),
        ),
        UserNamespaces::OnlyRoot => {
            Check::missing("user namespaces", "restricted to root", Some("run `sudo sysctl kernel.unprivileged_userns_clone=1`"))
        }
        UserNamespaces::OnlyWithProfile => Check::missing(
            "user namespaces",
            "denied by AppArmor to programs without a profile",
            Some(
                "add a profile for aye with `userns,` to /etc/apparmor.d, or run `sudo sysctl \
                kernel.apparmor_restrict_unprivileged_userns=0`",
            ),
        ),
    };
    let landlock = match kernel.landlock {
        0 => Check::missing(
            "landlock",
            "not available",
            Some("use Linux 5.13 or newer with `landlock` among the security modules (`lsm=`)"),
        ),
        version => Check::good("landlock", format!("version {version}")),
    };
    let seccomp = if kernel.seccomp {
        Check::good("seccomp", "filters are supported")
    } else {
        Check::missing("seccomp", "filters are not supported", Some("use a kernel with CONFIG_SECCOMP_FILTER"))
    };
    let processes = if kernel.process_limit {
        Check::good("process limit", "per command, including for root")
    } else {
        Check::note("process limit", "per user; does not apply to root before Linux 6.14")
    };
    vec![users, landlock, seccomp, processes]
}

/// Checks the configuration file.
fn configuration(directories: &Directories) -> Check {
    let file = directories.config_file();
    Check::good(
        "configuration",
        if file.exists() { file.display().to_string() } else { "no file; all settings have their defaults".to_owned() },
    )
}

/// Checks the file of additional certificate authorities, if one is configured.
fn certificates(app: &AppContext) -> Option<Check> {
    const NAME: &str = "certificates";
    let path = app.settings.ca_bundle(&app.directories, &app.home)?;
    let shown = path.display();
    Some(match count_authorities(&path) {
        Ok(1) => Check::good(NAME, format!("1 authority from {shown}, in addition to the system's")),
        Ok(count) => Check::good(NAME, format!("{count} authorities from {shown}, in addition to the system's")),
        Err(reason) => {
            let fix = "set `http.ca_bundle` in config.toml to a PEM file with certificates";
            Check::missing(NAME, format!("cannot use `{shown}`: {reason}"), Some(fix))
        }
    })
}

/// Checks the project's settings, if the project has any.
fn project_configuration(app: &AppContext, common: &Common) -> Option<Check> {
    const NAME: &str = "project configuration";
    let project = ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust);
    match project.tighten_settings(&app.settings) {
        Some(Ok((_, layer))) => {
            let taken = if layer.taken.is_empty() { "nothing".to_owned() } else { layer.taken.join(", ") };
            let ignored: String = layer.ignored.iter().flat_map(|line| ["; ", line.as_str()]).collect();
            Some(Check::note(NAME, format!(".aye/config.toml tightens {taken}{ignored}")))
        }
        Some(Err(error)) => Some(Check::missing(NAME, error.to_string(), Some("fix that line"))),
        None if project.has_settings() => Some(Check::note(NAME, ".aye/config.toml is ignored: this project is not trusted")),
        None => None,
    }
}

/// Checks the user's key bindings, if there are any.
fn keys(app: &AppContext) -> Option<Check> {
    let file = keymap_watch::keys(app);
    let problems = match file.text? {
        Ok(text) => key_problems(&text),
        Err(why) => vec![format!("cannot be read: {why}")],
    };
    if problems.is_empty() {
        return Some(Check::good("keys", file.path));
    }
    let says = format!("{}: {}", file.path, problems.join("; "));
    Some(Check::missing("keys", says, Some("fix these lines; the rest of the file is used")))
}

fn check_layers(policy: &Result<Policy, CliError>) -> Check {
    match policy {
        Ok(policy) => Check::good("policy", &policy.name),
        Err(error) => Check::from_problem("policy", Problem::joined(error.problems.clone())),
    }
}

/// Describes the mode of new sessions, and whether the user approves commands themselves or their effects when no rule
/// matches.
fn approvals(app: &AppContext, policy: &Policy, common: &Common, tier: SandboxTier) -> Check {
    let mode = app.session_mode(common.mode);
    let approve = app.enforcer(policy, Sandbox::Absent, mode).approve();
    let commands = match approve {
        Approve::Effects if tier == SandboxTier::Preview => {
            "commands without a rule run in a copy first, and aye asks about their effects"
        }
        Approve::Effects => "aye asks before each command without a rule, because this sandbox does not support previews",
        Approve::Command => "aye asks before each command without a rule",
    };
    Check::note("approvals", format!("mode {}; {commands}", mode.as_str()))
}

/// Checks the user's custom tools and those of a trusted project.
fn tools(app: &AppContext, common: &Common) -> Check {
    let mut app = app.clone();
    app.with_tools_of(&ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust));
    let set = &app.tools;
    if set.problems.is_empty() {
        return Check::good("custom tools", set.names());
    }
    let fix = "fix these files; `aye tool schema --manifest` prints the schema";
    Check::missing("custom tools", set.problems.join(" "), Some(fix))
}

/// Lists the language servers found, without starting them. Returns `None` if all of them are disabled.
fn language_servers(app: &AppContext, common: &Common, tier: SandboxTier) -> Option<Check> {
    const NAME: &str = "language servers";
    let servers = find_servers(app);
    let (found, missing): (Vec<_>, Vec<_>) = servers.iter().partition(|server| server.program.is_ok());
    let word = |server: &&FoundServer| match &server.program {
        Ok(program) => format!("{} ({})", server.language, program.display()),
        Err(why) if why.ends_with(NOT_IN_PATH) => server.language.to_owned(),
        Err(why) => format!("{} ({why})", server.language),
    };
    let words = |servers: &[&FoundServer]| servers.iter().map(word).collect::<Vec<_>>().join(", ");
    let mut says = match (found.is_empty(), missing.is_empty()) {
        (true, true) => return None,
        (false, true) => words(&found),
        (false, false) => format!("{}; not found: {}", words(&found), words(&missing)),
        (true, false) => format!("none found for {}", words(&missing)),
    };
    if !matches!(tier, SandboxTier::Guarded | SandboxTier::Preview) {
        says.push_str("; off, because there is no sandbox with namespaces");
    } else if !ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust).is_trusted() {
        says.push_str("; off here until you trust the project");
    }
    Some(Check::note(NAME, says))
}

/// Lists the policy restrictions that no sandbox on this system can enforce.
fn unenforced_rules(app: &AppContext, policy: &Policy, probe: &Probe) -> Vec<Check> {
    let standing = SandboxHost::from_probe(app, crate::tools::RepositoryTrust::Untrusted, probe.clone());
    let enforcer = standing.enforcer(app, policy);
    standing.sandbox_policy(&enforcer).unenforceable_rules().into_iter().map(|what| Check::note("not enforced", what)).collect()
}

/// Checks that sessions can be saved.
fn data(directory: &Path) -> Check {
    // Check the nearest existing directory, because the first start creates the rest.
    let there = directory.ancestors().find(|level| level.exists()).unwrap_or(directory);
    match tempfile::tempfile_in(there) {
        Ok(_) => Check::good("data directory", directory.display().to_string()),
        Err(error) => Check::missing(
            "data directory",
            format!("`{}` is not writable: {error}", there.display()),
            Some("make it writable for you, or set AYE_DATA_DIR to another directory"),
        ),
    }
}

fn store(directory: &Path) -> Check {
    match health(directory) {
        Ok(Health::Missing) => Check::note("sessions", "none yet"),
        Ok(Health::Sound { bytes }) => Check::good("sessions", format!("the database is intact ({} KiB)", bytes.div_ceil(1024))),
        Ok(Health::Damaged(reason)) => Check::missing(
            "sessions",
            format!("the database is damaged: {reason}"),
            Some("start aye: it moves the damaged database aside and creates a new one"),
        ),
        Err(error) => Check::missing("sessions", error.to_string(), None),
    }
}

/// Checks for records that have not yet been delivered to a service.
fn service(state: ServiceState) -> Check {
    let name = match state.sink {
        OutboxSink::Approvals => "approval service",
        OutboxSink::Audit => "audit service",
        OutboxSink::Sessions => "session service",
        OutboxSink::Telemetry => "telemetry service",
        OutboxSink::Workspace => "workspace service",
    };
    match state.problem {
        None => Check::good(name, state.summary),
        Some(problem) => Check::missing(name, format!("{}; {problem}", state.summary), Some("run `aye sync` to retry now")),
    }
}

/// Checks the disk usage of one kind of data, which may exceed its limit until aye prunes data at startup.
fn disk_usage(taken: &UsageEntry) -> Check {
    let megabytes = |bytes: u64| bytes.div_ceil(1 << 20);
    let says = format!("{} of {} MB ({})", megabytes(taken.bytes), megabytes(taken.budget_bytes), taken.key);
    let name = match taken.name {
        "sessions" => "session space",
        "artifacts" => "artifact space",
        "snapshots" => "snapshot space",
        "caches" => "cache space",
        "layers" => "layer space",
        _ => "log space",
    };
    if taken.bytes <= taken.budget_bytes {
        return Check::note(name, says);
    }
    Check { fix: Some("run `aye sessions prune` to delete the excess, or raise the limit".to_owned()), ..Check::note(name, says) }
}

/// Lists the workspace copies with undecided changes, and the sessions to which they belong.
fn undecided_layers(data: &Path) -> Option<Check> {
    let layers = undecided_use(&sandbox::abandoned_bases(data));
    let named = layers.iter().take(UNDECIDED).map(|layer| format!("session {} ({})", layer.session, size(layer.bytes)));
    let named: Vec<_> = named.collect();
    let more = layers.len().saturating_sub(named.len());
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let says = format!("changes in a copy are waiting for your decision: {}{more}", named.join(", "));
    let fix = Some("run `aye --resume=ID` to apply or discard them, or `aye sessions delete ID` to delete them".to_owned());
    (!layers.is_empty()).then(|| Check { fix, ..Check::note("undecided", says) })
}

/// Checks the model and where its key comes from, without showing the key.
fn model(app: &AppContext, common: &Common) -> Check {
    match models_under_policy(app, common).would_use(common.model.as_deref()) {
        Ok(choice) => usable_model("model", &choice),
        Err(error) => Check::from_problem("model", error.into_problem()),
    }
}

/// Checks the model for summaries, if one is configured.
fn summary_model(app: &AppContext, common: &Common) -> Option<Check> {
    let models = models_under_policy(app, common);
    let (key, name) = models.summary_model()?;
    let forbidden = models.allowed_models().forbidding_rule(name);
    let check = match (forbidden, models.choice(Some(name))) {
        (Some(rule), _) => {
            let problem = Problem::new(format!("the policy does not allow `{name}` (rule: {rule})"));
            Check::from_problem("summaries", problem.hint(format!("change `{key}`, or add the model to `allowed_models`")))
        }
        (None, Ok(choice)) => usable_model("summaries", &choice),
        (None, Err(error)) => Check::from_problem("summaries", error.into_problem().with_location(name)),
    };
    Some(check)
}

fn models_under_policy(app: &AppContext, common: &Common) -> ModelCatalog {
    let models = ModelCatalog::new(app);
    match app.policy(common.policy.as_deref(), None) {
        Ok(policy) => models.with_policy(&policy),
        // Errors in the policy are reported by another check.
        Err(_) => models,
    }
}

/// Returns the check for a usable model, including where its key comes from.
fn usable_model(check: &'static str, choice: &ProviderModel) -> Check {
    let name = choice.name();
    let from = match choice.key_place {
        KeyPlace::Nowhere => return Check::good(check, format!("{name}, no API key needed")),
        KeyPlace::Account => return Check::good(check, format!("{name}, with your cloud account")),
        KeyPlace::Keyring => "the keyring",
        KeyPlace::Command => "`api_key_command`",
        KeyPlace::File => "credentials.toml",
        KeyPlace::Environment => &choice.key_variable,
    };
    Check::good(check, format!("{name}, API key from {from}"))
}

fn terminal(environment: &Environment) -> Check {
    let seen = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let kind = environment.get("TERM").unwrap_or("unknown");
    if !seen {
        return Check::note("terminal", "stdin or stdout is not a terminal; `aye exec` works without one");
    }
    if kind == "dumb" {
        return Check::missing(
            "terminal",
            "TERM is `dumb`, which cannot show the full-screen UI",
            Some("start aye in another terminal, or use `aye exec`"),
        );
    }
    let size = terminal_size::terminal_size().map(|(width, height)| format!(", {} × {} cells", width.0, height.0));
    Check::good("terminal", format!("{kind}{}", size.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::sandbox::Tier;

    #[test]
    fn the_reasons_for_a_lower_sandbox_tier_are_reported() {
        let probe = Probe { tier: Tier::Namespaces, missing: vec!["a is mounted".to_owned(), "b".to_owned()], upper_base: None };
        let text = as_text(&[sandbox(tier(probe.tier), &probe)]);
        assert_eq!(
            text,
            "✗ sandbox  guarded: commands are sandboxed, but their changes cannot be previewed\n           → a is mounted; b\n"
        );
    }

    #[test]
    fn missing_kernel_features_are_reported_with_a_fix() {
        let none = Kernel { landlock: 0, seccomp: false, process_limit: false, user_namespaces: UserNamespaces::OnlyRoot };
        let text = as_text(&kernel(&none));
        let expected = "\
✗ user namespaces  restricted to root
                   → run `sudo sysctl kernel.unprivileged_userns_clone=1`
✗ landlock         not available
                   → use Linux 5.13 or newer with `landlock` among the security modules (`lsm=`)
✗ seccomp          filters are not supported
                   → use a kernel with CONFIG_SECCOMP_FILTER
· process limit    per user; does not apply to root before Linux 6.14
";
        assert_eq!(text, if cfg!(target_os = "linux") { expected } else { "" });
    }

    #[test]
    fn a_missing_directory_is_checked_at_its_future_location() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(data(&directory.path().join("a/b")).state, State::Good);
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(data(&file).state, State::Missing);
        assert_eq!(store(&directory.path().join("a")).state, State::Note);
    }
}
