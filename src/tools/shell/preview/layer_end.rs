//! The end of a run in a layer that preceded any approval: determines whether the effects need approval. Also sets the
//! environment for such commands.

use super::written_bytes::written_bytes;
use crate::policy::CodeReader;
use crate::ports::LayerEnd;
use crate::protocol::{Action, CountedEffects, Effects, Place, RunsWhen, SandboxAccess, Target, format_count, size};
use crate::sys::overlay::{Change, Changes, Node, NodeKind};
use crate::sys::process::{End, FinishedRun, signal_name};
use crate::sys::sandbox::Confinement;
use crate::tools::ignored::IgnoreRules;
use crate::tools::settings::ToolSettings;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Number of changed paths above which approval is required, because they are not checked against the policy
/// individually.
const MAX_ACTIONS: usize = 5_000;
/// File size in bytes above which snapshots omit a file, so its deletion cannot be undone.
const SNAPSHOT_BYTES: u64 = 64 << 20;
/// Prefix of a digest, which identifies the version of the data from which it was computed.
const DIGEST_VERSION: &str = "2:";
/// Directories of programs and libraries that every command can read and no ordinary user can change.
const SYSTEM_DIRECTORIES: &[&str] = &["/usr", "/bin", "/lib", "/lib64", "/opt", "/nix/store"];
/// Signals that end a faulty program.
const CRASHES: &[&str] = &["SIGILL", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV", "SIGPIPE"];
/// Environment variables for unattended commands, which should not leave files behind in the workspace.
const ALONE: &[(&str, &str)] = &[
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_EDITOR", "false"),
    ("EDITOR", "false"),
    ("VISUAL", "false"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("PYTHONPYCACHEPREFIX", "/tmp/.pycache"),
    // A command should not look for new versions or report usage, which would need network access.
    ("CHECKPOINT_DISABLE", "1"),
    ("DENO_NO_UPDATE_CHECK", "1"),
    ("DO_NOT_TRACK", "1"),
    ("DOTNET_CLI_TELEMETRY_OPTOUT", "1"),
    ("NEXT_TELEMETRY_DISABLED", "1"),
    ("NO_UPDATE_NOTIFIER", "1"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("npm_config_update_notifier", "false"),
];

/// Sets environment variables from which programs can tell that they are running unattended.
pub(super) fn set_unattended(environment: &mut Vec<(OsString, OsString)>) {
    environment.retain(|(name, _)| !ALONE.iter().any(|(own, _)| name == own));
    environment.extend(ALONE.iter().map(|(name, value)| ((*name).into(), (*value).into())));
}

/// Returns whether something other than the command itself ended it.
pub(super) fn is_stopped(end: End) -> bool {
    match end {
        End::Exited(_) => false,
        // A crash is treated as an exit of the program itself.
        End::Signalled(signal) => !signal_name(signal).is_some_and(|name| CRASHES.contains(&name)),
        End::TimedOut | End::Killed | End::Interrupted | End::DiskFull | End::LayerFull | End::MemoryFull => true,
    }
}

/// Returns the hidden secrets to which a failed command's output refers. The command most likely failed because they
/// are hidden.
pub(super) fn hidden_secrets_named(
    finished: &FinishedRun,
    confinement: &Confinement,
    printed: &str,
    settings: &ToolSettings,
) -> Vec<SandboxAccess> {
    if !settings.command.sandbox.layered || finished.end == End::Exited(0) {
        return Vec::new();
    }
    let in_workspace = |place: &&std::path::PathBuf| confinement.roots.iter().any(|root| place.starts_with(root));
    let secrets = confinement.hidden.iter().filter(in_workspace);
    let named = secrets.filter_map(|place| {
        let name = place.file_name()?.to_str().filter(|name| printed.contains(name))?;
        let removes = printed.lines().any(|line| line.contains(name) && says_in_use(line));
        Some(SandboxAccess::Read { path: place.display().to_string(), removes })
    });
    named.take(3).collect()
}

/// Returns whether an error message says that a path is in use, which is how the kernel refuses to delete or rename a
/// hidden path.
fn says_in_use(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    ["resource busy", "ebusy", "errno 16]", "os error 16)"].iter().any(|text| line.contains(text))
}

/// Formats a note such as `build output in target/: 12 files, 3.0 MB`.
pub(super) fn build_note(build: &CountedEffects) -> String {
    let files = build.created + build.changed + build.deleted;
    let direct = if build.direct { ", written directly" } else { "" };
    format!("build output in {}/: {}, {}{direct}", build.path, format_count(files, "file", "files"), size(build.bytes))
}

/// Changes that are not build output.
#[derive(Debug, Default)]
pub(super) struct OtherChanges {
    actions: Vec<Action>,
    is_too_much: bool,
    beyond_edits: bool,
    beyond_rewind: bool,
}

impl OtherChanges {
    pub(super) fn add(
        &mut self,
        change: &Change,
        changes: &Changes,
        reader: Option<CodeReader>,
        ignored: &mut IgnoreRules<'_>,
        settings: &ToolSettings,
    ) {
        // There is nothing to decide about if the content, the mode and the owner are unchanged.
        if change.is_touched_file() {
            return;
        }
        if change.is_only_touched() {
            self.beyond_edits = true;
        }
        let real = changes.old(&change.path);
        let deletes = change.after.is_none();
        let is_link = [change.before, change.after].iter().flatten().any(|node| node.kind == NodeKind::Link);
        let is_mode = match (change.before, change.after) {
            (Some(before), Some(after)) => before.mode != after.mode || before.owners_differ(&after),
            (None, Some(after)) => after.kind == NodeKind::File && after.mode & 0o111 != 0,
            _ => false,
        };
        let is_replaced = change.before.is_some() && change.after.is_some() && change.kind().is_none();
        let is_moved = change.moved_from.is_some() || change.link_of.is_some() || change.other_link_count() > 0;
        let opened = reader.is_some_and(|reader| reader.when == RunsWhen::Opened);
        let is_large = change.before.is_some_and(|node| node.bytes > SNAPSHOT_BYTES);
        let lost = change.before.is_some() && (deletes || is_replaced) && (is_large || ignored.ignores(change));
        self.beyond_edits |= deletes || is_link || is_mode || is_replaced || is_moved;
        self.beyond_rewind |= is_escaping_link(change, changes, settings) || opened || lost;
        if self.actions.len() >= MAX_ACTIONS {
            self.is_too_much = true;
            return;
        }
        let given = change.path.display().to_string();
        let target = Target { given, real, place: Place::File { bytes: written_bytes(change) } };
        self.actions.push(if deletes { Action::Delete { target } } else { Action::Write { target } });
    }

    pub(super) fn finish(self) -> LayerEnd {
        LayerEnd {
            stopped: false,
            error: None,
            ended: None,
            actions: (!self.is_too_much).then_some(self.actions),
            beyond_edits: self.beyond_edits,
            beyond_rewind: self.beyond_rewind,
            digest: String::new(),
        }
    }
}

/// Returns whether a change creates a symlink whose target is outside its workspace directory. Symlinks to programs
/// that belong to the system or a toolchain, as found in virtual environments, do not count.
fn is_escaping_link(change: &Change, changes: &Changes, settings: &ToolSettings) -> bool {
    if change.after.is_none_or(|node| node.kind != NodeKind::Link) {
        return false;
    }
    let Ok(to) = std::fs::read_link(changes.new_content(&change.path)) else { return true };
    let mut place = changes.old(&change.path);
    place.pop();
    for part in to.components() {
        match part {
            Component::ParentDir => drop(place.pop()),
            Component::CurDir => {}
            part => place.push(part),
        }
    }
    let programs =
        SYSTEM_DIRECTORIES.iter().map(Path::new).chain(settings.command.sandbox.paths.shown.iter().map(PathBuf::as_path));
    !place.starts_with(changes.directory()) && !programs.into_iter().any(|directory| place.starts_with(directory))
}

/// Returns whether a digest has the form that this version computes, and can thus be compared.
pub(super) fn is_current_digest(digest: &str) -> bool {
    digest.starts_with(DIGEST_VERSION)
}

/// Computes a digest of all effects, including their new content, and of the output. Content that is too large is
/// represented by its size and times.
pub(super) fn digest(changes: &[Changes], effects: &Effects) -> String {
    let mut hash = Sha256::new();
    hash.update(format!("{}\0{}\0", effects.ended, effects.output));
    // One buffer for all changes, because there may be many.
    let mut record = Vec::new();
    for changes in changes {
        hash.update(changes.directory().as_os_str().as_encoded_bytes());
        hash.update(b"\0");
        for change in changes.entries() {
            record.clear();
            record.extend_from_slice(change.path.as_os_str().as_encoded_bytes());
            record.extend([0, u8::from(change.moved_from.is_some())]);
            add_state_before(&mut record, change);
            add_optional(&mut record, change.after.as_ref(), add_node);
            add_optional(&mut record, change.written.as_ref(), |record, written| record.extend_from_slice(written.as_bytes()));
            hash.update(&record);
        }
    }
    format!("{DIGEST_VERSION}{}", crate::text::hex(&hash.finalize()))
}

/// Adds the entry that a change replaces. If its content was recorded, that is used instead of its times, so a file
/// that was merely touched counts as unchanged.
fn add_state_before(record: &mut Vec<u8>, change: &Change) {
    add_optional(record, change.before.as_ref(), add_identity);
    add_optional(record, change.content.as_ref(), |record, content| record.extend_from_slice(content.as_bytes()));
    // The entries of a directory are changes too.
    let times = change.before.filter(|node| change.content.is_none() && node.kind != NodeKind::Directory);
    add_optional(record, times.as_ref(), add_node);
}

/// Adds a value, or a mark saying that there is none.
fn add_optional<T>(record: &mut Vec<u8>, value: Option<&T>, add: impl FnOnce(&mut Vec<u8>, &T)) {
    record.push(u8::from(value.is_some()));
    if let Some(value) = value {
        add(record, value);
    }
}

/// Adds the kind, mode and owners of an entry.
fn add_identity(record: &mut Vec<u8>, node: &Node) {
    record.push(match node.kind {
        NodeKind::File => b'f',
        NodeKind::Directory => b'd',
        NodeKind::Link => b'l',
        NodeKind::Special => b's',
    });
    record.extend([node.mode, node.owner, node.group].into_iter().flat_map(u32::to_le_bytes));
}

/// Adds a node's complete state.
fn add_node(record: &mut Vec<u8>, node: &Node) {
    add_identity(record, node);
    record.extend([node.inode, node.bytes, node.links].into_iter().flat_map(u64::to_le_bytes));
    let times = [node.modified.0, node.modified.1, node.changed.0, node.changed.1];
    record.extend(times.into_iter().flat_map(i64::to_le_bytes));
}
