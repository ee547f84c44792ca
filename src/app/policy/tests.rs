//! What the commands print, and that every template is in order.
