//! Every bound of the loop, by name.

/// Steps of one task when nobody says otherwise.
pub const MAX_STEPS: u32 = 1_000;
/// The share of `max_steps` at which the person is warned, in percent.
pub const STEP_WARNING_PERCENT: u64 = 80;
/// The share of a budget at which the person is warned, in percent.
pub const BUDGET_WARNING_PERCENT: f64 = 80.0;
/// A budget that is used up is offered to be raised by this factor.
pub const BUDGET_FACTOR: f64 = 2.0;
/// Tokens of an answer before it is there, in the estimate of a request: a modest one, because a budget that stops work too early is
/// as wrong as one that stops it late.
pub const OUTPUT_GUESS_TOKENS: u64 = 500;
/// How long providers keep what was sent at least, so that it costs less the next time.
pub const CACHE_SECONDS: i64 = 300;
/// Letters of a provider's sentence that are repeated to the model.
pub const BLOCKED_CHARS: usize = 500;
/// The same call with the same arguments in a row: this one is asked about.
pub const SAME_CALLS: u32 = 8;
/// The same for what acts on nothing and changes nothing, such as the reading of a command that runs and is silent for long.
pub const SAME_POLLS: u32 = 60;
/// How much streamed text may be lost by a crash, in milliseconds of streaming.
pub const PARTIAL_SAVE_MS: i64 = 1_000;
/// Prompts that may wait behind a running task.
pub const MAX_QUEUED: usize = 100;
/// Files that a prompt may name to be read along.
pub const MAX_MENTIONS: usize = 20;
/// After a cut of the thread it fills this share of the window, in percent, so that not every step cuts again.
pub const WINDOW_FILL_PERCENT: u64 = 70;
/// Bytes a token stands for in the estimate that the provider's own count corrects.
pub const BYTES_PER_TOKEN: usize = 4;
/// One step's results fill at most this share of the window, in percent, all of them together.
pub const RESULTS_PERCENT: u64 = 25;
/// However many results there are, each may have so many bytes.
pub const RESULT_LEAST_BYTES: usize = 8_192;
/// Tokens a message costs beyond its text.
pub const MESSAGE_OVERHEAD_TOKENS: u64 = 4;
/// Pixels an image token stands for, and the most an image is taken to cost: larger ones are made smaller by who gets them.
pub const PIXELS_PER_TOKEN: u64 = 750;
pub const IMAGE_MOST_TOKENS: u64 = 4_800;
/// Most images that are sent along; where there are more, the oldest stay behind, this many at a time, so that what a provider
/// keeps of a thread seldom changes.
pub const MAX_IMAGES: usize = 20;
pub const IMAGES_LEFT_AT_ONCE: usize = 10;
/// Most of them in bytes, as base64: a request may have 32 MB.
pub const MAX_IMAGES_BYTES: u64 = 24 << 20;
/// How long reading the policy again may take before a session is resumed under the one in force, in seconds.
pub const RELOAD_SECONDS: u64 = 20;
/// How long planning a call, or a call that only reads, may take, in seconds.
pub const READ_SECONDS: u64 = 30;
/// How long a call that changes files may take before it is told to stop, in seconds.
pub const CHANGE_SECONDS: u64 = 30;
/// The same where a directory is copied, moved or deleted with all that is in it.
pub const TREE_SECONDS: u64 = 600;
/// How long a call that changes things may take to end once it was killed, in milliseconds. Commands are dead long before; what
/// is not ended then is given up, and its outcome is unknown.
pub const KILL_GRACE_MS: u64 = 5_000;
/// How long what runs may take to end when the person quits, in milliseconds.
pub const QUIT_GRACE_MS: u64 = 3_000;
/// Kept of what a command printed last while it runs, in bytes.
pub const TAIL_BYTES: usize = 4 << 10;
/// How often that is kept at most, and how often while nothing is printed, in milliseconds.
pub const TAIL_SAVE_MS: u64 = 1_000;
pub const TAIL_BEAT_MS: u64 = 10_000;
/// What may wait in memory, where a session goes on unsaved, in bytes; then it pauses again.
pub const UNSAVED_BYTES: usize = if cfg!(test) { 64 << 10 } else { 64 << 20 };
/// What servers may ask the person at once; more is cancelled unseen.
pub const MAX_ELICITATIONS: usize = 8;
/// Fields of a form, choices of a field, and bytes of all its words: a larger one is no form that a person fills in.
pub const MAX_FORM_FIELDS: usize = 30;
pub const MAX_FORM_CHOICES: usize = 100;
pub const MAX_FORM_BYTES: usize = 64 << 10;
/// What a server may say to the model: messages, bytes of words, images, and bytes of one as base64.
pub const SAMPLE_MESSAGES: usize = 200;
pub const SAMPLE_BYTES: usize = 256 << 10;
pub const SAMPLE_IMAGES: usize = 5;
pub const SAMPLE_IMAGE_BYTES: usize = 5 << 20;
/// Bytes of it that a person is asked about.
pub const SAMPLE_SHOWN_BYTES: usize = 32 << 10;
/// How long a server may take to say what it offers, or to hand over a resource or a prompt, in seconds.
pub const SERVER_SECONDS: u64 = 20;
/// What servers offer is asked for again after so many seconds.
pub const OFFERED_SECONDS: u64 = 15;
/// Resources and prompts that are told at once.
pub const MAX_OFFERED: usize = 200;
/// Bytes of a resource that is read along with a prompt; of that as much as fits is sent.
pub const RESOURCE_BYTES: usize = 2 << 20;
/// Bytes of a prompt of a server.
pub const SERVER_PROMPT_BYTES: usize = 256 << 10;
/// Events and tool outputs that may wait for their reader.
pub const CHANNEL_DEPTH: usize = 256;
/// The share of the window that is free for the answer at most, in percent.
pub const RESERVED_PERCENT: u64 = 25;
/// After a compaction the newest messages stay, as many as fit this share of the window, in percent.
pub const RECENT_PERCENT: u64 = 25;
/// No compaction begins by itself that would free less than this share of the window, in percent.
pub const COMPACT_LEAST_PERCENT: u64 = 10;
/// Nor one that was asked for, where it would free fewer tokens.
pub const COMPACT_LEAST_TOKENS: u64 = 400;
/// A summary is worth it below this share of what it stands for, in percent.
pub const SUMMARY_WORTH_PERCENT: u64 = 90;
/// Wherever the threshold is, a window so full is compacted, in percent of the input there is room for.
pub const COMPACT_LATEST_PERCENT: u64 = 95;
/// After a compaction, or one that came to nothing, the next waits until the thread grew by this share of the window, in percent.
pub const COMPACT_GROWTH_PERCENT: u64 = 5;
/// Tokens a summary may have, the model's thinking included.
pub const SUMMARY_MOST_TOKENS: u64 = 16_000;
/// How often a request for a summary that is too long is made shorter.
pub const SUMMARY_HALVINGS: u32 = 3;
/// What the person said stands beside a summary in their words, up to this share of the window, in percent; of each so many bytes.
pub const SAID_PERCENT: u64 = 5;
pub const SAID_MOST_BYTES: usize = 4_000;
/// Files that are named beside a summary, the newest.
pub const FILES_NAMED: usize = 60;
/// A prompt that seems larger than the window by this factor, in percent, is not even sent.
pub const HOPELESS_PERCENT: u64 = 125;
