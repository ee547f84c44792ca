//! Previews, saves and revokes the rules that "always allow" stores in the user's files.

use super::context::AppContext;
use super::models::DEMO;
use super::user_policy;
use crate::config::{ConfigError, grants};
use crate::host::nesting::Nesting;
use crate::policy::{Bundle, Layer, Scope};
use crate::ports::{BoxFuture, Rules, SavedRules};
use crate::protocol::{
    FileDiff, FileDiffs, GrantOption, GrantRule, GrantScope, IN_BACKGROUND, ListedGrant, OUTSIDE_SANDBOX, RulePlace,
};
use crate::store::{DecisionFilter, Store};
use jiff::Timestamp;
use std::path::{Path, PathBuf};

/// Maximum size of a diff in bytes, far above that of a rule with its context.
const DIFF_BYTES: usize = 32 << 10;
/// Length, in characters, to which summaries in the log are truncated.
const SUMMARY_CHARS: usize = 400;
const SCOPES: [GrantScope; 2] = [GrantScope::Project, GrantScope::Everywhere];

/// The user's rule files that apply to a workspace.
#[derive(Clone)]
pub(crate) struct UserRules {
    /// Decision log, if past decisions can be looked up.
    log: Option<Store>,
    config: PathBuf,
    workspace: PathBuf,
    home: PathBuf,
    /// Reason rules cannot be saved in this run, if they cannot.
    refused: Option<&'static str>,
}

/// A rule in a file, with the name it has in verdicts.
#[derive(Debug, Clone)]
pub(crate) struct NamedRule {
    pub name: String,
    pub file: PathBuf,
    /// Directory to which the rule is restricted. `None` means all directories.
    pub directory: Option<String>,
    pub kept: grants::SavedRule,
}

impl UserRules {
    /// Determines the rule files. `model` is the model in use; rules cannot be saved for requests from a recorded
    /// model.
    pub(crate) fn new(app: &AppContext, policy_file: Option<&Path>, model: &str) -> Self {
        let recorded = crate::llm::split_name(model).is_some_and(|(provider, _)| provider == DEMO);
        let refused = match (policy_file, Nesting::detect()) {
            _ if recorded => Some("not in the demo, which saves nothing"),
            (Some(_), _) => Some("not with --policy FILE, which replaces your own rules"),
            (None, Nesting::InsideAye) => Some("not inside a command that aye runs (AYE=1)"),
            (None, Nesting::Outermost) => None,
        };
        let (config, workspace, home) = (app.directories.config.clone(), app.workspace.clone(), app.home.clone());
        Self { log: None, config, workspace, home, refused }
    }

    /// Sets the log in which past decisions are looked up.
    pub(crate) fn with_log(self, log: Store) -> Self {
        Self { log: Some(log), ..self }
    }

    fn file(&self, scope: GrantScope) -> PathBuf {
        match scope {
            GrantScope::Session | GrantScope::Project => grants::project_file(&self.config, &self.workspace),
            GrantScope::Everywhere => grants::user_file(&self.config),
        }
    }

    /// Returns the initial text of a new file. A file that applies to all projects extends the built-in policy.
    fn start(&self, scope: GrantScope) -> String {
        match scope {
            GrantScope::Session | GrantScope::Project => user_policy::new_project_file("\"always allow\"", &self.workspace),
            GrantScope::Everywhere => user_policy::new_file("\"always allow\""),
        }
    }

    /// Returns the text to which the rules are to be added.
    fn base(&self, text: Option<&str>, rules: &[GrantRule], scope: GrantScope) -> String {
        let text = text.map_or_else(|| self.start(scope), str::to_owned);
        match scope {
            GrantScope::Session | GrantScope::Project => text,
            GrantScope::Everywhere => {
                rules.iter().fold(text, |text, rule| user_policy::with_capability(&text, rule.capability()))
            }
        }
    }

    fn add_to_text(
        &self,
        text: Option<&str>,
        rules: &[GrantRule],
        scope: GrantScope,
        until: Option<Timestamp>,
    ) -> Result<grants::EditedRules, String> {
        let reason = format!("{}{}", grants::REASON, Timestamp::now().strftime("%Y-%m-%d"));
        let added = grants::add_rules(&self.base(text, rules, scope), rules, &reason, until)?;
        // The next start reads this file, so it must be valid now.
        self.layer(&added.text, scope).map_err(|error| error.to_string())?;
        Ok(added)
    }

    fn layer(&self, text: &str, scope: GrantScope) -> Result<Layer, crate::policy::BundleError> {
        let file = self.file(scope);
        let name = file.display().to_string();
        Ok(match scope {
            GrantScope::Session | GrantScope::Project => Layer::from_file(Scope::Mine, Bundle::parse_rules(text, &name)?, &file),
            GrantScope::Everywhere => Layer::from_file(Scope::User, Bundle::parse(text, &name)?, &file),
        })
    }

    fn rule_place(&self, offer: &GrantOption, scope: GrantScope) -> RulePlace {
        let file = self.file(scope);
        let shown = crate::text::abbreviate_home(&file, &self.home);
        let empty = RulePlace { scope, file: shown, line: 0, diff: FileDiffs::default(), note: None, refused: None };
        let refused = |why: String| RulePlace { refused: Some(why), ..empty.clone() };
        if let Some(why) = self.refused.or_else(|| offer.refuses(scope)) {
            return refused(why.to_owned());
        }
        let old = match grants::read(&file) {
            Ok(old) => old,
            Err(error) => return refused(error.to_string()),
        };
        match self.add_to_text(old.as_deref(), offer.rules_for(scope), scope, None) {
            Err(why) => refused(why),
            Ok(added) => {
                let is_new = old.is_none() && scope == GrantScope::Everywhere;
                let before = if is_new { self.base(None, offer.rules_for(scope), scope) } else { old.unwrap_or_default() };
                let name = crate::text::reveal_line(&empty.file);
                let hunks = crate::tools::line_hunks(&before, &added.text);
                let diff = FileDiff::new(&format!("a/{name}"), &format!("b/{name}"), hunks);
                let note = is_new.then(|| "creates the file".to_owned());
                if diff.text_bytes() > DIFF_BYTES {
                    // A rule is on one line, so the line number locates it.
                    return RulePlace { line: added.line, note: note.or_else(|| Some("too long to show".to_owned())), ..empty };
                }
                RulePlace { line: added.line, diff: diff.into(), note, ..empty }
            }
        }
    }

    fn save_now(&self, rules: &[GrantRule], scope: GrantScope, until: Option<Timestamp>) -> Result<SavedRules, String> {
        if let Some(why) = self.refused {
            return Err(why.to_owned());
        }
        let file = self.file(scope);
        let text = {
            let _only_one = grants::lock(&self.config).map_err(|error| error.to_string())?;
            let text = grants::change(&file, |old| {
                let named =
                    |why: String| ConfigError::single(format!("`{}`: {why}", crate::text::abbreviate_home(&file, &self.home)));
                let added = self.add_to_text(old, rules, scope, until).map_err(named)?;
                Ok((added.text.clone(), added.text))
            });
            text.map_err(|error| error.to_string())?
        };
        if scope == GrantScope::Project
            && let Err(error) = grants::note_directory(&file, &self.workspace)
        {
            tracing::warn!(%error, "cannot save the directory of a project's rules");
        }
        self.save_rules(&text, rules, scope)
    }

    fn remove_now(&self, rules: &[GrantRule], scope: GrantScope) -> Result<SavedRules, String> {
        let file = self.file(scope);
        let _only_one = grants::lock(&self.config).map_err(|error| error.to_string())?;
        let there = grants::read(&file).map_err(|error| error.to_string())?.is_some();
        if !there {
            // The file was removed, and its rules with it.
            return Ok(SavedRules { names: Vec::new(), layer: None });
        }
        let text = grants::change(&file, |old| {
            let old = old.unwrap_or_default();
            let (text, _) = grants::remove_rules(old, |kept| rules.contains(&kept.rule)).map_err(ConfigError::single)?;
            self.layer(&text, scope).map_err(|error| ConfigError::single(error.to_string()))?;
            Ok((text.clone(), text))
        });
        self.save_rules(&text.map_err(|error| error.to_string())?, &[], scope)
    }

    fn save_rules(&self, text: &str, rules: &[GrantRule], scope: GrantScope) -> Result<SavedRules, String> {
        let layer = self.layer(text, scope).map_err(|error| error.to_string())?;
        let kept = grants::list(text)?;
        let named = kept.iter().filter(|kept| rules.contains(&kept.rule));
        Ok(SavedRules { names: named.map(|kept| layer.scope.rule(kept.line)).collect(), layer: Some(layer) })
    }

    /// Returns the saved rules that apply in this workspace, starting with those for this project.
    fn applicable_rules(&self) -> Result<Vec<NamedRule>, ConfigError> {
        let mut all = Vec::new();
        for scope in SCOPES {
            let directory = (scope == GrantScope::Project).then(|| self.workspace.display().to_string());
            all.extend(in_file(&self.file(scope), scope, directory)?);
        }
        Ok(all)
    }
}

/// Returns the saved rules in a file. In the user's own policy, only rules that are marked as saved are included.
pub(crate) fn in_file(file: &Path, scope: GrantScope, directory: Option<String>) -> Result<Vec<NamedRule>, ConfigError> {
    let Some(text) = grants::read(file)? else { return Ok(Vec::new()) };
    let kept = grants::list(&text).map_err(|why| ConfigError::single(format!("`{}`: {why}", file.display())))?;
    let own = if scope == GrantScope::Everywhere { Scope::User } else { Scope::Mine };
    let saved = kept.into_iter().filter(|kept| own == Scope::Mine || kept.saved_on().is_some());
    Ok(saved
        .map(|kept| NamedRule { name: own.rule(kept.line), file: file.to_owned(), directory: directory.clone(), kept })
        .collect())
}

impl NamedRule {
    /// Describes the validity of the rule, as in `since 2026-11-21, until 2026-12-21T10:00:00Z`.
    pub(crate) fn times(&self, now: Timestamp) -> String {
        let since = self.kept.saved_on().map_or_else(|| "written by hand".to_owned(), |day| format!("since {day}"));
        match self.kept.expires_at {
            Some(end) if end <= now => format!("{since}, EXPIRED {end}"),
            Some(end) => format!("{since}, until {end}"),
            None => since,
        }
    }
}

impl Rules for UserRules {
    fn rule_places(&self, offer: &GrantOption) -> Vec<RulePlace> {
        if offer.memory_only.is_some() {
            return Vec::new();
        }
        SCOPES.into_iter().map(|scope| self.rule_place(offer, scope)).collect()
    }

    fn save(
        &self,
        rules: Vec<GrantRule>,
        scope: GrantScope,
        until: Option<Timestamp>,
    ) -> BoxFuture<'_, Result<SavedRules, String>> {
        let own = self.clone();
        off_the_loop(move || own.save_now(&rules, scope, until))
    }

    fn remove(&self, rules: Vec<GrantRule>, scope: GrantScope) -> BoxFuture<'_, Result<SavedRules, String>> {
        let own = self.clone();
        off_the_loop(move || own.remove_now(&rules, scope))
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<ListedGrant>, String>> {
        let own = self.clone();
        off_the_loop(move || {
            let now = Timestamp::now();
            let listed = |named: NamedRule| {
                let times = named.times(now);
                ListedGrant { rule: named.kept.rule.to_string(), name: named.name, times }
            };
            own.applicable_rules().map(|all| all.into_iter().map(listed).collect()).map_err(|error| error.to_string())
        })
    }

    fn recent_commands(&self, most: usize) -> BoxFuture<'_, Result<Vec<String>, String>> {
        let Some(log) = self.log.clone() else { return Box::pin(async { Ok(Vec::new()) }) };
        off_the_loop(move || {
            // Most decisions do not concern commands.
            let filter = DecisionFilter { most: most * 8, ..DecisionFilter::default() };
            let decided = log.decisions(&filter).map_err(|error| error.to_string())?;
            let mut lines: Vec<String> = Vec::new();
            for decision in decided.iter().rev().filter(|decision| decision.tool_name == "RunCommand") {
                let Some(line) = to_rule_line(&decision.summary).filter(|line| !lines.iter().any(|known| known == line)) else {
                    continue;
                };
                lines.push(line.to_owned());
                if lines.len() == most {
                    break;
                }
            }
            Ok(lines)
        })
    }
}

/// Returns the command in a summary, or `None` if the summary does not show exactly the command. The log does not
/// record whether a suffix such as `(in the background)` is part of the command, so such a summary is skipped.
fn to_rule_line(summary: &str) -> Option<&str> {
    let line = summary.strip_prefix("$ ")?;
    let is_whole = summary.chars().count() < SUMMARY_CHARS && !line.ends_with('…');
    let has_suffix = line.ends_with(IN_BACKGROUND) || line.ends_with(OUTSIDE_SANDBOX);
    (is_whole && !has_suffix).then_some(line)
}

/// Runs file operations on a thread that may block.
fn off_the_loop<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> BoxFuture<'static, Result<T, String>> {
    Box::pin(async move { tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(error.to_string())) })
}

#[cfg(test)]
mod tests {
    use super::to_rule_line;

    #[test]
    fn only_summaries_that_show_exactly_the_command_are_rule_lines() {
        assert_eq!(to_rule_line("$ cargo test"), Some("cargo test"));
        for unclear in ["$ x # (in the background)", "$ x, outside the sandbox", "$ first …", "Read a", &"$ x".repeat(200)] {
            assert_eq!(to_rule_line(unclear), None, "{unclear}");
        }
    }
}
