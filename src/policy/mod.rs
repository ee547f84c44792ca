//! Pure functions that derive a verdict, rule, reason and risk from a policy and an action, without accessing the disk,
//! the clock or the environment.

mod bundle;
mod command;
mod computed_code;
mod custom;
mod danger;
mod diagnostics;
mod downloaded_code;
mod effect;
mod effective;
mod enforcer;
mod excluded;
mod files;
mod git;
pub mod guard;
mod hidden_places;
mod host_access;
mod interactive_programs;
mod interpreters;
mod invoke;
mod layer;
mod layer_verdict;
mod limit;
mod line_prefix;
mod named;
mod opening;
mod operands;
mod passed_programs;
mod path_words;
mod paths;
pub mod permit;
mod planned_commands;
mod policy_file;
mod program_kinds;
mod programs;
mod read_only;
pub mod redact;
mod remembered_hosts;
mod request;
mod rule_examples;
mod search;
mod secret_reads;
mod shell;
mod steering;
mod upload;
pub mod url;

pub use bundle::{
    AgentLimits, Approve, ArgumentKind, BuildOutputMode, Bundle, BundleError, Cache, EnvironmentTerms, NamedCommand, Network,
    Preview, SandboxSetting, Test, ToolPattern, lint_narrow_grants, quote_entry, warnings,
};
pub use custom::to_shell_line;
pub use danger::{addresses, deleted_paths, deletes_ignored_files, lasting};
pub use effective::EffectiveSetting;
pub use enforcer::{Enforcer, EntryProtection, Explanation, LowestLimit, ProtectionRules, SandboxRequirements};
pub use excluded::{EXCLUDED_LIST, ExcludedPaths};
pub use git::{GitWrites, git_changes_settings, git_writes, planned_commit};
pub use interactive_programs::{Attendance, attendance};
pub use layer::{Layer, RuleId, Scope};
pub use limit::{ToolLimit, ToolNames, entry_server, from_other_agent, names_tool};
pub use line_prefix::{LinePrefix, is_covered_by_prefixes, may_run_matching};
pub use named::{line, quoted};
pub use operands::{Follows, Operand, operands};
pub use paths::{CodeReader, CodeReaders, Context, Sandbox, is_kept_only_with_approval, is_secret_name, normal, runs_code};
pub use permit::{Permit, PreviewPermit, PreviewRun, Question, UnaskedConditions, Verdict};
pub use programs::programs;
pub use read_only::is_read_only;
pub use secret_reads::reads_unnamed_files;
pub use shell::pattern::matches as matches_model;
pub use shell::{entered, first_commands, keeps_meaning, run_files, runs_input};
