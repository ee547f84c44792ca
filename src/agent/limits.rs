//! Limits of the agent loop.

/// Default number of steps of one task.
pub(crate) const MAX_STEPS: u32 = 1_000;
/// Percentage of `max_steps` at which the user is warned.
pub(crate) const STEP_WARNING_PERCENT: u64 = 80;
/// Percentage of a budget at which the user is warned.
pub(crate) const BUDGET_WARNING_PERCENT: f64 = 80.0;
/// Factor by which aye suggests raising an exhausted budget.
pub(crate) const BUDGET_FACTOR: f64 = 2.0;
/// Number of output tokens assumed in the estimate of a request. The value is typical and not a maximum, so that a
/// budget stops work neither too early nor too late.
pub(crate) const OUTPUT_ESTIMATE_TOKENS: u64 = 500;
/// Minimum time in seconds for which providers cache a request. A cached part is cheaper in the next request.
pub(crate) const CACHE_SECONDS: i64 = 300;
/// Maximum number of characters of a provider's message that are repeated to the model.
pub(crate) const BLOCKED_CHARS: usize = 500;
/// Number of identical consecutive calls from which each call requires approval.
pub(crate) const SAME_CALLS: u32 = 8;
/// Number of identical consecutive calls from which each call requires approval, for calls that change nothing, such as
/// reading the output of a silent command.
pub(crate) const SAME_POLLS: u32 = 60;
/// Streamed text that a crash may lose, in milliseconds of streaming.
pub(crate) const PARTIAL_SAVE_MS: i64 = 1_000;
/// Maximum number of calls of a response whose hooks run concurrently.
pub(crate) const HOOKED_CALLS: usize = 4;
/// Maximum number of times that hooks can make the model continue in one task.
pub(crate) const STOP_HOOK_BLOCKS: u32 = 8;
/// Number of consecutive identical failures of a goal's check, without a changed file, after which the goal waits for
/// the user.
pub(crate) const SAME_CHECK_FAILURES: u32 = 3;
/// Timeout in seconds of a goal's check.
pub(crate) const CHECK_SECONDS: u64 = 600;
/// Maximum number of bytes that are sent to the model from the end of a check's output.
pub(crate) const GOAL_OUTPUT_BYTES: usize = 8 << 10;
/// Maximum number of prompts queued behind a running task.
pub(crate) const MAX_QUEUED: usize = 100;
/// Maximum number of files attached to a prompt.
pub(crate) const MAX_MENTIONS: usize = 20;
/// Percentage of the context window that remains filled after messages are dropped, so that not every step drops
/// messages.
pub(crate) const WINDOW_FILL_PERCENT: u64 = 70;
/// Number of bytes per token in the estimate that the provider's own count corrects.
pub(crate) const BYTES_PER_TOKEN: usize = 4;
/// Maximum percentage of the context window for all results of one step together.
pub(crate) const RESULTS_PERCENT: u64 = 25;
/// Minimum size reserved for each result, in bytes, regardless of the number of results.
pub(crate) const MIN_RESULT_BYTES: usize = 8_192;
/// Number of tokens that a message has in addition to its text.
pub(crate) const MESSAGE_OVERHEAD_TOKENS: u64 = 4;
/// Number of pixels per image token. Providers scale down images that would exceed their limit.
pub(crate) const PIXELS_PER_TOKEN: u64 = 750;
pub(crate) const MAX_IMAGE_TOKENS: u64 = 4_800;
/// Maximum number of images in a request. Beyond it, the oldest are dropped, this many at a time, so that the cached
/// part of a thread seldom changes.
pub(crate) const MAX_IMAGES: usize = 20;
pub(crate) const IMAGES_DROPPED_AT_ONCE: usize = 10;
/// Maximum size of all images as base64, in bytes: a request may be 32 MB.
pub(crate) const MAX_IMAGES_BYTES: u64 = 24 << 20;
/// Seconds to wait for a policy reload before a session is resumed under the current policy.
pub(crate) const RELOAD_SECONDS: u64 = 20;
/// Timeout in seconds for planning a call, and for a call that only reads.
pub(crate) const READ_SECONDS: u64 = 30;
/// Timeout in seconds after which aye asks a call that changes files to stop.
pub(crate) const CHANGE_SECONDS: u64 = 30;
/// Timeout in seconds for copying, moving or deleting a directory tree.
pub(crate) const TREE_SECONDS: u64 = 600;
/// Time in milliseconds that a changing call may take to end after it was killed. Commands usually end much sooner. A
/// call that takes longer is abandoned, and its outcome is unknown.
pub(crate) const KILL_GRACE_MS: u64 = 5_000;
/// Time in milliseconds that running calls may take to end when the user quits.
pub(crate) const QUIT_GRACE_MS: u64 = 3_000;
/// Maximum number of bytes that are saved from the end of a running command's output.
pub(crate) const TAIL_BYTES: usize = 4 << 10;
/// Minimum interval in milliseconds between two saves of that output: while a command prints, and while it is silent.
pub(crate) const TAIL_SAVE_MS: u64 = 1_000;
pub(crate) const TAIL_BEAT_MS: u64 = 10_000;
/// Maximum number of bytes buffered in memory while a session continues unsaved. Beyond that, the session pauses again.
pub(crate) const UNSAVED_BYTES: usize = if cfg!(test) { 64 << 10 } else { 64 << 20 };
/// Maximum number of open requests from servers to the user; further ones are cancelled without being shown.
pub(crate) const MAX_ELICITATIONS: usize = 8;
/// Maximum number of form fields, of choices in a field, and of bytes in all text of a form; larger forms are
/// cancelled.
pub(crate) const MAX_FORM_FIELDS: usize = 30;
pub(crate) const MAX_FORM_CHOICES: usize = 100;
pub(crate) const MAX_FORM_BYTES: usize = 64 << 10;
/// Limits of a sampling request: messages, bytes of text, images, and bytes of one image as base64.
pub(crate) const SAMPLE_MESSAGES: usize = 200;
pub(crate) const SAMPLE_BYTES: usize = 256 << 10;
pub(crate) const SAMPLE_IMAGES: usize = 5;
pub(crate) const SAMPLE_IMAGE_BYTES: usize = 5 << 20;
/// Maximum size of a sampling request that can be shown for approval, in bytes.
pub(crate) const SAMPLE_SHOWN_BYTES: usize = 32 << 10;
/// Timeout in seconds for a server to list its offers, or to return a resource or a prompt.
pub(crate) const SERVER_SECONDS: u64 = 20;
/// Time in seconds for which the resources of servers are cached.
pub(crate) const RESOURCE_CACHE_SECONDS: u64 = 15;
/// Maximum number of resources and prompts in one list.
pub(crate) const MAX_OFFERED: usize = 200;
/// Maximum size of a resource attached to a prompt, in bytes; the rest is cut off.
pub(crate) const RESOURCE_BYTES: usize = 2 << 20;
/// Maximum size of a server prompt, in bytes.
pub(crate) const SERVER_PROMPT_BYTES: usize = 256 << 10;
/// Maximum number of events and output chunks in a channel.
pub(crate) const CHANNEL_DEPTH: usize = 256;
/// Maximum percentage of the context window that is reserved for the response.
pub(crate) const RESERVED_PERCENT: u64 = 25;
/// Percentage of the context window reserved for the newest messages, which compaction leaves unchanged.
pub(crate) const RECENT_PERCENT: u64 = 25;
/// Minimum percentage of the context window that an automatic compaction must free.
pub(crate) const MIN_COMPACT_PERCENT: u64 = 10;
/// Minimum number of tokens that a requested compaction must free.
pub(crate) const MIN_COMPACT_TOKENS: u64 = 400;
/// Maximum size of a summary, in percent of the size of the messages that it replaces.
pub(crate) const SUMMARY_WORTH_PERCENT: u64 = 90;
/// Percentage of the available input at which the conversation is compacted, regardless of the threshold.
pub(crate) const MAX_COMPACT_PERCENT: u64 = 95;
/// Percentage of the context window by which the thread must grow after a compaction, successful or failed, before the
/// next one.
pub(crate) const COMPACT_GROWTH_PERCENT: u64 = 5;
/// Maximum number of tokens of a summary, including the model's reasoning.
pub(crate) const MAX_SUMMARY_TOKENS: u64 = 16_000;
/// Maximum number of times that an overlong summary request is shortened.
pub(crate) const SUMMARY_HALVINGS: u32 = 3;
/// Percentage of the context window for the user's messages that a summary preserves verbatim, and the number of bytes
/// preserved of each.
pub(crate) const QUOTED_PERCENT: u64 = 5;
pub(crate) const MAX_QUOTED_BYTES: usize = 4_000;
/// Maximum number of files listed with a summary, newest first.
pub(crate) const FILES_NAMED: usize = 60;
/// Estimated size of a prompt, in percent of the context window, above which it is not sent at all.
pub(crate) const MAX_PROMPT_PERCENT: u64 = 125;
