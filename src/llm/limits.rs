//! Every bound of what a server may send in one response, by name. What one call may have is `ARGUMENT_BYTES` of the protocol.

/// One event. The longest response is shorter, also where its last event repeats it with everything escaped twice.
pub const EVENT_BYTES: usize = 32 << 20;
/// Of a body that is no event stream.
pub const OTHER_BYTES: usize = 64 << 10;
/// Text and reasoning together; more than any model writes.
pub const TEXT_BYTES: usize = 16 << 20;
/// All events together, with what is around their text. The longest response in the smallest pieces has less.
pub const RESPONSE_BYTES: usize = 64 << 20;
/// Calls, texts, thoughts and other parts of one response.
pub const PARTS: usize = 4_096;
/// The same event with a piece of the response, one after the other.
pub const SAME_EVENTS: usize = 10_000;
/// An event that is longer is not compared with the one before it.
pub const SAME_EVENT_BYTES: usize = 512;
/// Values in the JSON of the arguments of one call: each takes many times its text in memory.
pub const ARGUMENT_VALUES: usize = 20_000;
/// Arguments of all calls of a response together; calls beyond are not run.
pub const ALL_ARGUMENT_BYTES: usize = 16 << 20;
/// Values in the JSON of one event, of which a larger one than `SMALL_EVENT_BYTES` is looked through for them.
pub const EVENT_VALUES: usize = 200_000;
pub const SMALL_EVENT_BYTES: usize = 64 << 10;
/// What is kept of arguments that have more than a call may have.
pub const ARGUMENT_HEAD_BYTES: usize = 1 << 10;
