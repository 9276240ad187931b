//! stub
use crate::frame::Frame;
use crate::packet::Parsed;
/// Tags.
pub const MAX_VLAN_TAGS: u32 = 4;
/// Extension headers.
pub const MAX_EXTENSION_HEADERS: u32 = 6;
/// Parse.
pub fn parse<F: Frame + ?Sized>(_frame: &F) -> Parsed { Parsed::NotIp }
