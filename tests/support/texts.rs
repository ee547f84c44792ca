//! Strings of the program that tests wait for. Each string is written only here, so rewording it changes one line.

pub const TAB_TO_REVIEW: &str = "tab to review";
pub const TRUST_THE_PROJECT: &str = "Trust the project";
pub const PROJECT_TRUSTED: &str = "project trusted";
pub const COMMAND_WOULD: &str = "The command would";
pub const RUN_AGAIN_WITH_ACCESS: &str = "Run again with access?";
pub const COMMANDS_HINT: &str = "/ commands";
pub const SETUP_CARD: &str = "Set up aye";
pub const OUTCOME_UNKNOWN: &str = "outcome unknown";
pub const NOTHING_WAS_SENT: &str = "nothing was sent";
pub const NOT_SENT: &str = "not sent";
pub const NOTHING_TO_CONTINUE: &str = "nothing to continue";
pub const ALWAYS_ALLOW: &str = "Always allow this";
pub const ENTER_SEND: &str = "enter send";
pub const ENTER_CONFIRM: &str = "enter confirm";
pub const FILES_WATCHED: &str = "the files are watched";
pub const NO_ONE_TO_ASK: &str = "no user can approve this call";
pub const EMPTY_DRAFT: &str = "Ask, or describe a change";
pub const NOTHING_APPLIED: &str = "nothing was applied";
pub const UNSAVED_CHANGES: &str = "unsaved changes";
pub const SANDBOX_ON: &str = "sandbox on";
pub const NO_SANDBOX: &str = "no sandbox";
pub const BY_PROCESS: &str = "by process";
pub const CHANGED_ON_DISK: &str = "changed on disk since it was proposed";
pub const NOT_TRUSTED: &str = "is not trusted";
pub const OPEN_READ_ONLY: &str = "open read-only";
pub const NOW_UNARCHIVED: &str = "is now unarchived";
pub const EDITED_BY_YOU: &str = "edited by you";
pub const OPEN_IN_PROCESS: &str = "is open in process";
pub const INTERRUPTED: &str = "interrupted by the user";
pub const COMMAND_INTERRUPTED: &str = "the user interrupted the command";
pub const NEEDS_APPROVAL: &str = "needs approval until one of your rules";
pub const CHANGED_SINCE_REVIEW: &str = "has changed since you reviewed it";
pub const TOOL_EXISTS: &str = "has the same name; rename one of them";
pub const READ_ONLY_VIEW: &str = "read-only view of the workspace";
pub const NOT_APPROVED: &str = "is not approved";
pub const LOOKS_LIKE_A_KEY: &str = "looks like an API key";
pub const NOTHING_DECIDED: &str = "nothing was decided";
pub const BLOCKED_COMMAND: &str = "blocked command";
pub const EMPTY_LINE: &str = "An empty line is not an answer";
pub const ENTER_ADD_KEY: &str = "enter add a key";
pub const NEWER_AYE: &str = "written by a newer";
pub const OPEN_HERE: &str = "open here";
pub const NOT_A_DIRECTORY: &str = "is not a directory";
pub const IS_A_DIRECTORY: &str = "is a directory";
pub const NOT_RUN: &str = "aye does not run them";
pub const PREVIOUS_POLICY: &str = "the previous policy applies";
pub const POLICY_INVALID: &str = "policy file invalid";
pub const NO_BYPASS: &str = "no option skips the policy";
pub const COMMAND_NOT_RUN: &str = "the command did not run, so the model does not see it";
pub const KEY_PREFIX: &str = "Its prefix identifies";
pub const READ_AGAIN: &str = "read it again";
pub const NO_SESSION: &str = "no session in";

/// All strings of this table.
pub const ALL: &[&str] = &[
    TAB_TO_REVIEW,
    TRUST_THE_PROJECT,
    PROJECT_TRUSTED,
    COMMAND_WOULD,
    RUN_AGAIN_WITH_ACCESS,
    COMMANDS_HINT,
    SETUP_CARD,
    OUTCOME_UNKNOWN,
    NOTHING_WAS_SENT,
    NOT_SENT,
    NOTHING_TO_CONTINUE,
    ALWAYS_ALLOW,
    ENTER_SEND,
    ENTER_CONFIRM,
    FILES_WATCHED,
    NO_ONE_TO_ASK,
    EMPTY_DRAFT,
    NOTHING_APPLIED,
    UNSAVED_CHANGES,
    SANDBOX_ON,
    NO_SANDBOX,
    BY_PROCESS,
    CHANGED_ON_DISK,
    NOT_TRUSTED,
    OPEN_READ_ONLY,
    NOW_UNARCHIVED,
    EDITED_BY_YOU,
    OPEN_IN_PROCESS,
    INTERRUPTED,
    COMMAND_INTERRUPTED,
    NEEDS_APPROVAL,
    CHANGED_SINCE_REVIEW,
    TOOL_EXISTS,
    READ_ONLY_VIEW,
    NOT_APPROVED,
    LOOKS_LIKE_A_KEY,
    NOTHING_DECIDED,
    BLOCKED_COMMAND,
    EMPTY_LINE,
    ENTER_ADD_KEY,
    NEWER_AYE,
    OPEN_HERE,
    NOT_A_DIRECTORY,
    IS_A_DIRECTORY,
    NOT_RUN,
    PREVIOUS_POLICY,
    POLICY_INVALID,
    NO_BYPASS,
    COMMAND_NOT_RUN,
    KEY_PREFIX,
    READ_AGAIN,
    NO_SESSION,
];
