//! Project files that affect a run, and whether the user trusts them.

use super::error::CliError;
use super::policy_error::with_its_line;
use super::server_approval::{SERVERS, ServerApproval, first_changed, project_programs};
use crate::config::trust::{Item, Project, TrustItemKind, TrustProof, TrustStatus};
use crate::config::{ConfigError, InstructionFile, ProjectLayer, Settings, ToolLists};
use crate::hooks::HookFile;
use crate::host::options::Trust;
use crate::policy::{Bundle, Layer, Scope, is_kept_only_with_approval, runs_code};
use crate::ports::{InstructionSource, Instructions};
use crate::protocol::{Problem, cut_position_before, format_count};
use crate::skills::{FolderContents, SKILL_FILE};
use crate::tools::RepositoryTrust;
use crate::tui::ProjectFile;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;

/// Maximum number of names listed on a line; any further names are only counted.
const NAMES: usize = 6;
/// Maximum number of files that the trust prompt lists because they run code when the folder is opened.
const MAX_THAT_RUN_CODE: usize = 8;
/// Maximum number of folder entries searched for files that run code.
const MAX_ENTRIES: usize = 10_000;
/// Maximum number of bytes of a file shown in the trust prompt.
const SHOWN_BYTES: usize = 64 << 10;

/// A project that has been examined, with a proof if the user trusts exactly this content.
pub(crate) struct ProjectConfig {
    project: Project,
    proof: Option<TrustProof>,
    changes: Option<Vec<String>>,
    /// Hashes of the trusted files, by name.
    known: Arc<BTreeMap<String, String>>,
    /// Hashes of the trusted instruction files in directories below the workspace, by name.
    nested: Arc<BTreeMap<String, String>>,
    /// Descriptions of changes to instruction files in directories below the workspace.
    nested_changes: Vec<String>,
    /// Time since which the project has been trusted, if it is trusted for this run only.
    for_this_run: Option<SystemTime>,
    config: PathBuf,
    unread: Arc<UnreadReports>,
}

/// Tool manifests of a project.
#[derive(Default)]
pub(crate) struct Manifests<'a> {
    pub files: Vec<(PathBuf, &'a [u8])>,
    /// Descriptions of what has changed since the project was trusted.
    pub changes: Vec<String>,
}

/// Instruction files below a workspace that the user trusts.
enum TrustedInstructions {
    /// Files with these names and hashes.
    Known(Arc<BTreeMap<String, String>>),
    /// Files that already existed when the user trusted the project for one run, as determined by their change time. A
    /// file written afterwards has a later change time.
    ForThisRun(SystemTime),
}

/// Source of instructions for directories below a trusted workspace.
struct NestedParts {
    workspace: PathBuf,
    config: PathBuf,
    allowed: TrustedInstructions,
    /// Trusted rule files that apply only to certain files, each with a matcher for those files.
    rules: Vec<(GlobSet, Instructions)>,
    unread: Arc<UnreadReports>,
}

/// Reports on instruction files that are ignored. Each file is reported once.
#[derive(Default)]
pub(crate) struct UnreadReports {
    met: Mutex<HashSet<String>>,
    lines: Mutex<Vec<String>>,
    new: Notify,
}

impl UnreadReports {
    /// Removes and returns the reports that have been added since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for a new report.
    pub(crate) async fn wait_for_report(&self) {
        self.new.notified().await;
    }

    fn add(&self, name: &str, why: &str) -> bool {
        let is_new = self.met.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        if is_new {
            let line = format!("ignored the instructions in `{name}`: the file {why}; restart aye to review and trust it");
            self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            self.new.notify_one();
        }
        is_new
    }
}

impl InstructionSource for NestedParts {
    fn instructions_for(&self, file: &Path) -> Vec<Instructions> {
        let found = crate::config::instructions_on_the_way(&self.workspace, file);
        let trusted = found.into_iter().filter(|file| self.is_trusted(file));
        // An imported file applies where the file that imports it applies. The importing file comes first.
        let mut directory = self.workspace.clone();
        let nested = trusted.map(move |InstructionFile { path, text, .. }| {
            if crate::config::is_instruction_file(&path) {
                path.parent().unwrap_or(&path).clone_into(&mut directory);
            }
            Instructions { part: format!("everything below {}", directory.display()), file: path, text }
        });
        let below = file.strip_prefix(&self.workspace).unwrap_or(file);
        let rules = self.rules.iter().filter(|(files, _)| files.is_match(below)).map(|(_, rule)| rule.clone());
        nested.chain(rules).collect()
    }
}

impl NestedParts {
    /// Returns whether the user trusts the current content of the file. If not, reports this, because aye asks about
    /// the file only at its next start.
    fn is_trusted(&self, file: &InstructionFile) -> bool {
        let name = file.path.strip_prefix(&self.workspace).unwrap_or(&file.path).to_string_lossy().into_owned();
        let why = match &self.allowed {
            TrustedInstructions::Known(known) => match known.get(&name) {
                Some(digest) if *digest == file.digest() => return true,
                Some(digest) if !digest.is_empty() => "changed since you trusted it",
                Some(_) | None => "was not part of the project when you trusted it",
            },
            TrustedInstructions::ForThisRun(since)
                if metadata_change_time(&file.path).is_some_and(|changed| changed <= *since) =>
            {
                return true;
            }
            TrustedInstructions::ForThisRun(_) => "changed after aye started",
        };
        if self.unread.add(&name, why) && matches!(self.allowed, TrustedInstructions::Known(_)) {
            Project::record_nested(&self.workspace, &self.config, &name);
        }
        false
    }
}

/// Returns when a file's metadata last changed, a time that programs cannot set.
fn metadata_change_time(path: &Path) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt;
    let metadata = path.metadata().ok()?;
    let seconds = u64::try_from(metadata.ctime()).ok()?;
    let nanoseconds = u32::try_from(metadata.ctime_nsec()).ok()?;
    Some(UNIX_EPOCH + Duration::new(seconds, nanoseconds))
}

impl ProjectConfig {
    /// Examines the project. Reads only files that are trusted or that do not need trust.
    pub(crate) fn inspect(workspace: &Path, config: &Path, trust: Trust) -> Self {
        let project = Project::examine(workspace);
        let standing = match trust {
            Trust::ForThisRun => TrustStatus::Trusted(TrustProof::for_this_run()),
            Trust::AsRecorded => project.trust_status(config),
        };
        let (proof, changes) = match standing {
            TrustStatus::Trusted(proof) => (Some(proof), None),
            TrustStatus::Changed(changes) => (None, Some(changes)),
            TrustStatus::NeverAsked => (None, None),
        };
        Self {
            known: Arc::new(project.trusted_hashes(config)),
            nested: Arc::new(project.trusted_nested_hashes(config)),
            nested_changes: if proof.is_some() { project.nested_changes(config) } else { Vec::new() },
            for_this_run: (trust == Trust::ForThisRun).then(SystemTime::now),
            unread: Arc::default(),
            project,
            proof,
            changes,
            config: config.to_owned(),
        }
    }

    /// Returns whether an instruction file below a trusted workspace is new or has changed. Such a file is ignored
    /// until the user trusts it.
    pub(crate) fn has_new_parts(&self) -> bool {
        self.for_this_run.is_none() && !self.nested_changes.is_empty()
    }

    /// Finds instruction files below the workspace, for the trust prompt.
    pub(crate) fn find_nested_instructions(&mut self) {
        self.project.find_nested();
    }

    /// Returns the reports on instruction files that are ignored.
    pub(crate) fn unread_reports(&self) -> Arc<UnreadReports> {
        Arc::clone(&self.unread)
    }

    /// Returns whether the project contains files that would take effect but are not trusted.
    pub(crate) fn needs_trust(&self) -> bool {
        self.proof.is_none() && self.project.effective_items().next().is_some()
    }

    /// Records that the user trusts the project. If this cannot be saved, the project is trusted only for this run.
    pub(crate) fn record_trust(&mut self) -> Result<(), ConfigError> {
        let kept = self.project.record(&self.config);
        self.proof = Some(TrustProof::for_this_run());
        self.known = Arc::new(self.project.now());
        self.nested = Arc::new(self.project.nested_hashes());
        self.nested_changes = Vec::new();
        kept.map(|_| ())
    }

    /// Returns whether the user has yet to decide whether to trust a project that contains no files to review.
    pub(crate) fn is_undecided(&self) -> bool {
        self.proof.is_none() && !self.needs_trust() && !self.project.is_declined(&self.config)
    }

    /// Records that the user does not trust a project that contains no files to review.
    pub(crate) fn decline(&self) -> Result<(), ConfigError> {
        self.project.decline(&self.config)
    }

    /// Returns whether the project contains files that are trusted.
    pub(crate) fn has_trusted_files(&self) -> bool {
        self.proof.is_some() && self.project.effective_items().next().is_some()
    }

    /// Returns which of the repository's programs git may start on behalf of commands.
    pub(crate) fn trust(&self) -> RepositoryTrust {
        match (self.is_trusted(), self.needs_trust()) {
            (true, _) => RepositoryTrust::Trusted,
            (false, true) => RepositoryTrust::Untrusted,
            (false, false) => RepositoryTrust::NeverAsked,
        }
    }

    pub(crate) fn is_trusted(&self) -> bool {
        self.proof.is_some()
    }

    /// Withdraws trust if the project's policy is invalid.
    pub(crate) fn withdraw_trust_if_invalid(&mut self) {
        if self.policy_error().is_some() {
            self.proof = None;
        }
    }

    /// Returns what has changed since the user trusted the project, or `None` if the user has never trusted it.
    pub(crate) fn changes(&self) -> Option<&[String]> {
        self.changes.as_deref().or(Some(&*self.nested_changes).filter(|changes| !changes.is_empty()))
    }

    pub(crate) fn instructions(&self) -> Vec<InstructionFile> {
        let all = self.proof.as_ref().map_or_else(Vec::new, |proof| self.project.instructions(proof).to_vec());
        all.into_iter().filter(|file| file.paths.is_empty()).collect()
    }

    /// Returns the rule files that apply only to certain files, each with a matcher for those files.
    fn path_rules(&self, proof: &TrustProof) -> Vec<(GlobSet, Instructions)> {
        let rules = self.project.instructions(proof).iter().filter(|file| !file.paths.is_empty());
        let compiled = rules.filter_map(|file| {
            let mut files = GlobSetBuilder::new();
            for pattern in &file.paths {
                files.add(GlobBuilder::new(pattern).literal_separator(true).build().ok()?);
            }
            let part = format!("files that match `{}`", file.paths.join("`, `"));
            Some((files.build().ok()?, Instructions { file: file.path.clone(), part, text: file.text.clone() }))
        });
        compiled.collect()
    }

    /// Returns the source of instructions for directories below the workspace, if the project is trusted.
    pub(crate) fn guidance(&self) -> Option<Arc<dyn InstructionSource>> {
        let rules = self.path_rules(self.proof.as_ref()?);
        let known = || TrustedInstructions::Known(Arc::clone(&self.nested));
        let parts = NestedParts {
            workspace: self.root().to_owned(),
            config: self.config.clone(),
            allowed: self.for_this_run.map_or_else(known, TrustedInstructions::ForThisRun),
            rules,
            unread: Arc::clone(&self.unread),
        };
        Some(Arc::new(parts))
    }

    pub(crate) fn root(&self) -> &Path {
        self.project.root()
    }

    pub(crate) fn trusted_hashes(&self) -> Arc<BTreeMap<String, String>> {
        Arc::clone(&self.known)
    }

    /// Returns the file that defines MCP servers, as it was when the project was examined, if the project is trusted.
    pub(crate) fn servers(&self) -> Option<(PathBuf, &[u8])> {
        self.project.texts_of_kind(TrustItemKind::McpServers, self.proof.as_ref()?).into_iter().next()
    }

    /// Returns whether the user trusts the current content of the server file and of the project's programs that a
    /// server starts.
    pub(crate) fn is_server_trusted(&self, argv: &[String], directory: Option<&Path>) -> bool {
        let names = std::iter::once(SERVERS.to_owned()).chain(project_programs(argv, directory, self.root()));
        first_changed(&self.project.now(), &[&*self.known], names).is_none()
    }

    /// Returns the approval of the project's servers. It checks the files again each time a server is started.
    pub(crate) fn approved_servers(&self) -> Arc<ServerApproval> {
        let (root, known) = (self.root().to_owned(), self.trusted_hashes());
        Arc::new(ServerApproval::new(root, known, self.config.clone()))
    }

    /// Returns whether the file that defines MCP servers has changed since the project was examined.
    pub(crate) fn servers_changed(&self) -> bool {
        let hash = |project: &Project| project.now().get(SERVERS).cloned();
        hash(&Project::examine(self.root())) != hash(&self.project)
    }

    /// Returns the lists of tools in the project's settings, if the project is trusted.
    pub(crate) fn tool_lists(&self) -> Option<Result<ToolLists, ConfigError>> {
        let config = self.project.texts_of_kind(TrustItemKind::Config, self.proof.as_ref()?);
        config.first().map(|(path, bytes)| ToolLists::from_project(bytes, path))
    }

    /// If the project is trusted, applies its settings. Returns the resulting settings, and a report on each key.
    pub(crate) fn tighten_settings(&self, settings: &Settings) -> Option<Result<(Settings, ProjectLayer), ConfigError>> {
        let config = self.project.texts_of_kind(TrustItemKind::Config, self.proof.as_ref()?);
        config.first().map(|(path, bytes)| ProjectLayer::read(bytes, path, settings))
    }

    /// Returns whether the project contains settings, whether they are trusted or not.
    pub(crate) fn has_settings(&self) -> bool {
        self.project.items().iter().any(|item| item.kind == TrustItemKind::Config)
    }

    /// Returns the project's slash commands, as they were when the project was examined, if the project is trusted.
    pub(crate) fn commands(&self) -> Vec<(PathBuf, &[u8])> {
        self.proof.as_ref().map_or_else(Vec::new, |proof| self.project.texts_of_kind(TrustItemKind::Command, proof))
    }

    /// Returns the project's hook files, as they were when the project was examined, if the project is trusted.
    pub(crate) fn hooks(&self) -> Vec<HookFile> {
        self.proof.as_ref().map_or_else(Vec::new, |proof| self.project.hooks(proof))
    }

    /// Returns the hashes of the project's files by name, as they were when the project was examined.
    pub(crate) fn hashes(&self) -> BTreeMap<String, String> {
        self.project.now()
    }

    /// Returns the project's skills, as they were when the project was examined, if the project is trusted.
    pub(crate) fn skills(&self) -> Vec<FolderContents> {
        self.proof.as_ref().map_or_else(Vec::new, |proof| self.project.skills(proof).to_vec())
    }

    /// Returns the project's agents, as they were when the project was examined, if the project is trusted.
    pub(crate) fn agents(&self) -> Vec<(PathBuf, &[u8])> {
        self.proof.as_ref().map_or_else(Vec::new, |proof| self.project.texts_of_kind(TrustItemKind::Agent, proof))
    }

    /// Returns messages about agents of the project that cannot be read, if the project is trusted.
    pub(crate) fn agent_limits(&self) -> Vec<String> {
        let is_ignored = |item: &&Item| item.kind == TrustItemKind::Agent && !item.is_effective();
        let items = self.project.items().iter().filter(is_ignored);
        let sentence = |item: &Item| format!("ignored the agents in `{}`: {}", item.name, item.summary());
        if self.is_trusted() { items.map(sentence).collect() } else { Vec::new() }
    }

    /// Returns the project's tool manifests, as they were when the project was examined, if the project is trusted.
    /// Manifests that no longer exist are omitted.
    pub(crate) fn manifests(&self) -> Manifests<'_> {
        let Some(proof) = &self.proof else { return Manifests::default() };
        let now = Project::examine(self.project.root());
        let there = now.texts_of_kind(TrustItemKind::Tool, proof);
        let mut found = Manifests::default();
        for (file, bytes) in self.project.texts_of_kind(TrustItemKind::Tool, proof) {
            match there.iter().find(|(path, _)| *path == file) {
                Some((_, same)) if *same == bytes => found.files.push((file, bytes)),
                Some(_) => {
                    found.changes.push(format!(
                        "`{}` changed; its tool stays as you trusted it. Restart aye to review the change",
                        file.display()
                    ));
                    found.files.push((file, bytes));
                }
                None => {}
            }
        }
        let known = self.project.texts_of_kind(TrustItemKind::Tool, proof);
        let new = there.iter().filter(|(path, _)| !known.iter().any(|(file, _)| file == path));
        found
            .changes
            .extend(new.map(|(path, _)| format!("`{}` is new; its tool is ignored. Restart aye to review it", path.display())));
        found
    }

    /// Returns the project's policy as a layer, if the project is trusted. Returns an error if the policy is invalid,
    /// because it may have contained restrictions.
    pub(crate) fn policy(&self) -> Result<Option<Layer>, CliError> {
        if self.proof.is_some() { self.parse_policy() } else { Ok(None) }
    }

    /// Returns the content of the project's policy, if the project is trusted.
    pub(crate) fn policy_bytes(&self) -> Option<&[u8]> {
        self.proof.as_ref().and_then(|_| self.project.policy()).and_then(|(_, bytes)| bytes.ok())
    }

    /// Returns the error in the project's policy, if there is one. The project need not be trusted.
    pub(crate) fn policy_error(&self) -> Option<String> {
        self.parse_policy().err().map(|error| error.into_problem().detailed_message())
    }

    fn parse_policy(&self) -> Result<Option<Layer>, CliError> {
        let Some((path, bytes)) = self.project.policy() else { return Ok(None) };
        let bytes = bytes.map_err(|why| {
            let what = format!("cannot read the project's policy `{}`", path.display());
            CliError::usage(Problem::new(what).because(why).hint("fix or remove it"))
        })?;
        let bundle = Bundle::parse_bytes(bytes, &path.display().to_string());
        let bundle = bundle.map_err(|error| CliError::usage(with_its_line(&error, bytes)))?;
        Ok(Some(Layer::from_file(Scope::Project, bundle, &path)))
    }

    /// Describes, one per line, each item that takes effect if the project is trusted, and each item that is ignored.
    pub(crate) fn lines(&self) -> Vec<String> {
        let nested = self.project.nested_items();
        let items = self.project.items().iter().chain(&nested);
        // The line of a skill contains the number of its other files.
        let items = items.filter(|item| item.kind != TrustItemKind::SkillFile || !item.is_effective());
        items.map(|item| format!("{} ({})", item.name, self.summary(item))).collect()
    }

    /// Returns the files that run code when the folder is opened in another program, each with that program's name.
    pub(crate) fn code_files(&self) -> Vec<String> {
        let root = self.root();
        let brings = |name: &str| self.project.items().iter().any(|item| item.name == name);
        let entries = crate::sys::path::entries(root).into_iter().flatten().take(MAX_ENTRIES).filter_map(Result::ok);
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut found: Vec<String> = names
            .filter(|name| name != ".git" && name != ".aye" && !brings(name))
            .filter(|name| is_kept_only_with_approval(&root.join(name)))
            .filter_map(|name| {
                let reader = runs_code(&root.join(&name), &[root.to_owned()])?;
                Some(format!("{name} (read by {})", reader.readers))
            })
            .collect();
        found.sort();
        let more = found.len().saturating_sub(MAX_THAT_RUN_CODE);
        found.truncate(MAX_THAT_RUN_CODE);
        found.extend((more > 0).then(|| format!("{more} more")));
        found
    }

    /// Returns the files to show in the trust prompt, up to a limit.
    pub(crate) fn files(&self) -> Vec<ProjectFile> {
        let file = |(name, bytes): (String, Vec<u8>)| {
            let text = String::from_utf8_lossy(&bytes);
            let end = cut_position_before(&text, SHOWN_BYTES);
            ProjectFile { name, text: text[..end].to_owned(), is_cut: end < text.len() }
        };
        self.project.texts().into_iter().map(file).collect()
    }

    /// Returns the URL of the repository's remote.
    pub(crate) fn remote(&self) -> Option<String> {
        self.project.remote()
    }

    fn summary(&self, item: &Item) -> String {
        if item.kind == TrustItemKind::Skill && item.is_effective() {
            return self.skill_summary(item);
        }
        if item.kind != TrustItemKind::Policy || !item.is_effective() {
            return item.summary();
        }
        match self.parse_policy() {
            Ok(Some(layer)) => {
                let rules = layer.bundle.stated.iter().filter(|stated| !stated.section.is_empty()).count();
                let rules = rules.saturating_sub(layer.bundle.widens().len());
                let rules = if rules == 1 { "1 rule".to_owned() } else { format!("{rules} rules") };
                match layer.bundle.widens() {
                    [] => format!("{rules}, restrictions only"),
                    [(line, what)] => format!(
                        "{rules}, restrictions only; 1 ignored because it would widen the policy: \
                        line {line}, {what}"
                    ),
                    [(line, what), ..] => {
                        let count = layer.bundle.widens().len();
                        format!(
                            "{rules}, restrictions only; {count} ignored because they would widen the policy: line \
                            {line}, {what}, …"
                        )
                    }
                }
            }
            Ok(None) => item.summary(),
            Err(_) => "policy, invalid".to_owned(),
        }
    }

    /// Describes a skill, including the number of its other files.
    fn skill_summary(&self, item: &Item) -> String {
        let directory = item.name.trim_end_matches(SKILL_FILE);
        let is_of_skill = |other: &&Item| other.kind == TrustItemKind::SkillFile && other.name.starts_with(directory);
        let files = self.project.items().iter().filter(is_of_skill).count() as u64;
        let more = if files > 0 { format!(", and {}", format_count(files, "file", "files")) } else { String::new() };
        format!("{}{more}", item.summary())
    }

    /// Returns a notice about ignored files, to be printed to stderr.
    pub(crate) fn ignored_files_notice(&self) -> Option<String> {
        if !self.needs_trust() {
            return None;
        }
        let shown = self.project.effective_items().filter(|item| item.kind != TrustItemKind::SkillFile);
        let names: Vec<&str> = shown.map(|item| item.name.as_str()).collect();
        let more = names.len().saturating_sub(NAMES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let names = names.iter().take(NAMES).copied().collect::<Vec<_>>().join(", ");
        let why = if self.changes.is_some() { "changed since you trusted it" } else { "is not trusted" };
        Some(format!("this project {why}; ignored: {names}{more} (pass `--trust` to trust it for this run)"))
    }

    /// Returns the notice about ignored files if they include a policy.
    pub(crate) fn ignored_policy_notice(&self) -> Option<String> {
        self.ignored_files_notice().filter(|_| self.project.policy().is_some())
    }

    /// Returns whether the project's policy has changed during this run.
    pub(crate) fn policy_changed(&self) -> bool {
        !self.project.is_policy_unchanged()
    }
}
