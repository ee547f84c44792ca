//! Limits for the agent loop.

/// Default step limit for a task.
pub(crate) const MAX_STEPS: u32 = 1_000;
/// Percentage of `max_steps` at which the user is warned.
pub(crate) const STEP_WARNING_PERCENT: u64 = 80;
/// Percentage of a budget at which the user is warned.
pub(crate) const BUDGET_WARNING_PERCENT: f64 = 80.0;
/// Factor by which aye suggests raising an exhausted budget.
pub(crate) const BUDGET_FACTOR: f64 = 2.0;
/// Number of output tokens assumed when the cost of a request is estimated. The value is typical rather than a
/// maximum, so a budget stops work neither too early nor too late.
pub(crate) const OUTPUT_ESTIMATE_TOKENS: u64 = 500;
/// Minimum time for which providers cache a request, in seconds. The cached part of the next request is cheaper.
pub(crate) const CACHE_SECONDS: i64 = 300;
/// Maximum length of a provider's message when it is quoted to the model, in characters.
pub(crate) const BLOCKED_CHARS: usize = 500;
/// Number of identical consecutive calls at which aye starts to require approval.
pub(crate) const SAME_CALLS: u32 = 8;
/// Like `SAME_CALLS`, but for calls that only poll, such as reading the output of a silent command.
pub(crate) const SAME_POLLS: u32 = 60;
/// Interval at which streamed text is saved, in milliseconds. A crash loses at most the text streamed since the last
/// save.
pub(crate) const PARTIAL_SAVE_MS: i64 = 1_000;
/// Maximum number of calls in a response whose hooks run concurrently.
pub(crate) const HOOKED_CALLS: usize = 4;
/// Maximum number of times that hooks may make the model continue within a task.
pub(crate) const STOP_HOOK_BLOCKS: u32 = 8;
/// Number of consecutive identical failures of a goal's check, with no file changed in between, after which the goal
/// waits for the user.
pub(crate) const SAME_CHECK_FAILURES: u32 = 3;
/// Timeout for a goal's check, in seconds.
pub(crate) const CHECK_SECONDS: u64 = 600;
/// Maximum number of bytes sent to the model from the end of a check's output.
pub(crate) const GOAL_OUTPUT_BYTES: usize = 8 << 10;
/// Maximum number of prompts that may be queued while a task is running.
pub(crate) const MAX_QUEUED: usize = 100;
/// Maximum number of files that a prompt can attach.
pub(crate) const MAX_MENTIONS: usize = 20;
/// Percentage of the context window that is still filled after messages are dropped. A lower value avoids dropping
/// messages in every step.
pub(crate) const WINDOW_FILL_PERCENT: u64 = 70;
/// Number of bytes per token assumed in estimates. The provider's counts correct these estimates.
pub(crate) const BYTES_PER_TOKEN: usize = 4;
/// Maximum percentage of the context window for all results of a step combined.
pub(crate) const RESULTS_PERCENT: u64 = 25;
/// Minimum size limit of each result, in bytes. If a step has very many results, the limit can be lower.
pub(crate) const MIN_RESULT_BYTES: usize = 8_192;
/// Number of tokens that a message takes up in addition to its text.
pub(crate) const MESSAGE_OVERHEAD_TOKENS: u64 = 4;
/// Number of pixels per image token. Providers scale down images that exceed their limit.
pub(crate) const PIXELS_PER_TOKEN: u64 = 750;
pub(crate) const MAX_IMAGE_TOKENS: u64 = 4_800;
/// Maximum number of images in a request. Beyond this limit, the oldest images are dropped in groups of
/// `IMAGES_DROPPED_AT_ONCE`, so the cached part of a thread seldom changes.
pub(crate) const MAX_IMAGES: usize = 20;
pub(crate) const IMAGES_DROPPED_AT_ONCE: usize = 10;
/// Maximum total size of all images as base64, in bytes. A request may be at most 32 MB.
pub(crate) const MAX_IMAGES_BYTES: u64 = 24 << 20;
/// Maximum time to wait for a policy reload before a session is resumed under the current policy, in seconds.
pub(crate) const RELOAD_SECONDS: u64 = 20;
/// Timeout for planning a call and for calls that only read, in seconds.
pub(crate) const READ_SECONDS: u64 = 30;
/// Time after which aye asks a call that changes files to stop, in seconds.
pub(crate) const CHANGE_SECONDS: u64 = 30;
/// Timeout for copying, moving or deleting a directory tree, in seconds.
pub(crate) const TREE_SECONDS: u64 = 600;
/// Time that a changing call is given to end after it was killed, in milliseconds. Commands usually end much sooner.
/// A call that takes longer is abandoned, and its outcome is unknown.
pub(crate) const KILL_GRACE_MS: u64 = 5_000;
/// Time that running calls are given to end when the user quits, in milliseconds.
pub(crate) const QUIT_GRACE_MS: u64 = 3_000;
/// Maximum number of bytes saved from the end of a running command's output.
pub(crate) const TAIL_BYTES: usize = 4 << 10;
/// Minimum intervals between two saves of a command's output while the command prints and while it is silent, in
/// milliseconds.
pub(crate) const TAIL_SAVE_MS: u64 = 1_000;
pub(crate) const TAIL_BEAT_MS: u64 = 10_000;
/// Maximum number of bytes buffered in memory while a session continues without being saved. Beyond this limit, the
/// session pauses again.
pub(crate) const UNSAVED_BYTES: usize = if cfg!(test) { 64 << 10 } else { 64 << 20 };
/// Maximum number of open requests from servers to the user. Further requests are cancelled without being shown.
pub(crate) const MAX_ELICITATIONS: usize = 8;
/// Limits for a form: the number of fields, the number of choices in a field, and the number of bytes of text in the
/// whole form. Larger forms are cancelled.
pub(crate) const MAX_FORM_FIELDS: usize = 30;
pub(crate) const MAX_FORM_CHOICES: usize = 100;
pub(crate) const MAX_FORM_BYTES: usize = 64 << 10;
/// Limits for a sampling request: the number of messages, of bytes of text and of images, and the size of each image
/// as base64, in bytes.
pub(crate) const SAMPLE_MESSAGES: usize = 200;
pub(crate) const SAMPLE_BYTES: usize = 256 << 10;
pub(crate) const SAMPLE_IMAGES: usize = 5;
pub(crate) const SAMPLE_IMAGE_BYTES: usize = 5 << 20;
/// Maximum size of a sampling request that can be shown for approval, in bytes.
pub(crate) const SAMPLE_SHOWN_BYTES: usize = 32 << 10;
/// Timeout for a server to list its offers or to return a resource or prompt, in seconds.
pub(crate) const SERVER_SECONDS: u64 = 20;
/// Time for which server resources are cached, in seconds.
pub(crate) const RESOURCE_CACHE_SECONDS: u64 = 15;
/// Maximum number of resources and prompts in one list.
pub(crate) const MAX_OFFERED: usize = 200;
/// Maximum size of a resource attached to a prompt, in bytes. Longer content is truncated.
pub(crate) const RESOURCE_BYTES: usize = 2 << 20;
/// Maximum size of a server prompt, in bytes.
pub(crate) const SERVER_PROMPT_BYTES: usize = 256 << 10;
/// Maximum number of events or output chunks in a channel.
pub(crate) const CHANNEL_DEPTH: usize = 256;
/// Maximum percentage of the context window that is reserved for the response.
pub(crate) const RESERVED_PERCENT: u64 = 25;
/// Percentage of the context window reserved for the newest messages, which a compaction leaves unchanged.
pub(crate) const RECENT_PERCENT: u64 = 25;
/// Minimum percentage of the context window that an automatic compaction must free.
pub(crate) const MIN_COMPACT_PERCENT: u64 = 10;
/// Minimum number of tokens that a compaction requested by the user must free.
pub(crate) const MIN_COMPACT_TOKENS: u64 = 400;
/// Maximum size of a summary, as a percentage of the size of the messages that it replaces.
pub(crate) const SUMMARY_WORTH_PERCENT: u64 = 90;
/// Percentage of the available input at which the conversation is compacted, regardless of the threshold.
pub(crate) const MAX_COMPACT_PERCENT: u64 = 95;
/// Percentage of the context window by which the thread must grow after a compaction, whether successful or not,
/// before the next one starts.
pub(crate) const COMPACT_GROWTH_PERCENT: u64 = 5;
/// Maximum length of a summary, including the model's reasoning, in tokens.
pub(crate) const MAX_SUMMARY_TOKENS: u64 = 16_000;
/// Maximum number of times that an overlong summary request is shortened and sent again.
pub(crate) const SUMMARY_HALVINGS: u32 = 3;
/// Limits for the user's messages that a summary preserves verbatim: their percentage of the context window in total,
/// and the number of bytes preserved of each.
pub(crate) const QUOTED_PERCENT: u64 = 5;
pub(crate) const MAX_QUOTED_BYTES: usize = 4_000;
/// Maximum number of files listed with a summary, newest first.
pub(crate) const FILES_NAMED: usize = 60;
/// Estimated size of a prompt above which it is not sent at all, as a percentage of the context window.
pub(crate) const MAX_PROMPT_PERCENT: u64 = 125;
