//! Ethernet II and its VLAN tags (IEEE 802.1Q, 802.1ad, and 0x9100 of older switches). Which VLAN a
//! frame belongs to doesn't matter to any rule, so tags are only stepped over.

use core::mem::offset_of;

use network_types::eth::{EthHdr, EtherType};
use network_types::vlan::VlanHdr;

use crate::frame::Frame;
use crate::packet::Fault;

/// What follows the Ethernet header or a tag.
#[derive(Clone, Copy)]
pub(super) struct Payload {
    /// As it lies in the frame: compare it with [`EtherType`], whose numbers are in network order.
    pub(super) ether_type: u16,
    /// The first byte after the EtherType.
    pub(super) offset: usize,
}

/// Steps over the Ethernet header and up to [`super::MAX_VLAN_TAGS`] tags.
#[inline(always)]
pub(super) fn parse<F: Frame + ?Sized>(frame: &F) -> Result<Payload, Fault> {
    let field = frame.read(offset_of!(EthHdr, ether_type)).ok_or(Fault::CutOff)?;
    let payload = Payload { ether_type: u16::from_ne_bytes(field), offset: EthHdr::LEN };
    // One call for each of MAX_VLAN_TAGS.
    let payload = untag(frame, payload)?;
    let payload = untag(frame, payload)?;
    let payload = untag(frame, payload)?;
    let payload = untag(frame, payload)?;
    if is_tag(payload.ether_type) { Err(Fault::VlanDepth) } else { Ok(payload) }
}

/// Steps over one tag, if there is one.
#[inline(always)]
fn untag<F: Frame + ?Sized>(frame: &F, payload: Payload) -> Result<Payload, Fault> {
    if !is_tag(payload.ether_type) {
        return Ok(payload);
    }
    let [_, _, high, low] = frame.read::<{ VlanHdr::LEN }>(payload.offset).ok_or(Fault::CutOff)?;
    Ok(Payload {
        ether_type: u16::from_ne_bytes([high, low]),
        offset: payload.offset.wrapping_add(VlanHdr::LEN),
    })
}

#[inline(always)]
const fn is_tag(ether_type: u16) -> bool {
    ether_type == EtherType::Ieee8021q as u16
        || ether_type == EtherType::Ieee8021ad as u16
        || ether_type == EtherType::Ieee8021QinQ1 as u16
}
