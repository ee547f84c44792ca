//! Names as the API takes them, whatever provider they come from.

use crate::ports::ModelRequest;
use std::borrow::Cow;
use std::fmt::Write;

/// The API refuses longer ids of calls.
const LONGEST_ID: usize = 64;
/// Ids up to here may be mere numbers of calls in an answer, used again in the next one.
const SHORT_ID: usize = 12;
/// The API refuses longer names of functions.
const LONGEST_NAME: usize = 64;

/// The id of a call of the answer at this place among the messages: the same for the call and for its result.
pub fn call_id<'a>(id: &'a str, answer_at: usize, request: &ModelRequest) -> Cow<'a, str> {
    if id.len() > LONGEST_ID {
        return Cow::Owned(format!("call_{}", &blake3::hash(id.as_bytes()).to_hex()[..32]));
    }
    let used_before = |message: &crate::protocol::Message| message.tool_calls().any(|call| call.tool_call_id.as_str() == id);
    if id.len() <= SHORT_ID && request.messages[..answer_at].iter().any(|message| used_before(message)) {
        let mut own = id.to_owned();
        // A string takes all that is written to it.
        let _ = write!(own, "_{}", request.messages.get(answer_at).map_or("", |message| message.message_id.as_str()));
        own.retain(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        return Cow::Owned(own);
    }
    Cow::Borrowed(id)
}

/// The name of a function: a model may make up any.
pub fn function_name(name: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let fitted: String = name.chars().map(|c| if fits(c) { c } else { '_' }).take(LONGEST_NAME).collect();
    Cow::Owned(if fitted.is_empty() { "unnamed".to_owned() } else { fitted })
}
