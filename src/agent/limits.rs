//! Every bound of the loop, by name.

/// Steps of one task when nobody says otherwise.
pub const MAX_STEPS: u32 = 1_000;
/// The share of `max_steps` at which the person is warned, in percent.
pub const STEP_WARNING_PERCENT: u32 = 80;
/// The same call with the same arguments in a row: this one is asked about.
pub const SAME_CALLS: u32 = 8;
/// How much streamed text may be lost by a crash, in milliseconds of streaming.
pub const PARTIAL_SAVE_MS: i64 = 1_000;
/// Prompts that may wait behind a running task.
pub const MAX_QUEUED: usize = 100;
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
/// How long planning a call, or a call that only reads, may take, in seconds.
pub const READ_SECONDS: u64 = 30;
/// How long a call that changes files may take before it is told to stop, in seconds. Its end is waited for: half of it
/// would be worse than late.
pub const CHANGE_SECONDS: u64 = 600;
/// How long a call that changes things may take to end once it was killed, in milliseconds. Commands are dead long before; what
/// is not ended then is given up, and its outcome is unknown.
pub const KILL_GRACE_MS: u64 = 5_000;
/// How long what runs may take to end when the person quits, in milliseconds.
pub const QUIT_GRACE_MS: u64 = 3_000;
/// Events and tool outputs that may wait for their reader.
pub const CHANNEL_DEPTH: usize = 256;
