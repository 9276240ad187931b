//! The operator's way out: one pinned number that the program reads for each packet. It needs no
//! daemon; the daemon only reads it.

use std::io;

use aya::maps::{Array, Map, MapData, MapError as AyaMapError};
use limiter_common::layout::{Bypass, map};

use super::error::MapError;
use super::pins::Pins;

/// The word for it on the command line and in answers.
#[must_use]
pub const fn name(bypass: Bypass) -> &'static str {
    match bypass {
        Bypass::Off => "off",
        Bypass::Shadow => "shadow",
        Bypass::Pass => "pass",
    }
}

/// What holds now.
pub fn get(pins: &Pins) -> Result<Bypass, MapError> {
    let number = open(pins)?.get(&0, 0).map_err(|error| MapError::new(map::BYPASS, error))?;
    Ok(Bypass::from_number(number))
}

/// From the next packet on, until it is set again; restarts don't change it.
pub fn set(pins: &Pins, bypass: Bypass) -> Result<(), MapError> {
    let set = open(pins)?.set(0, bypass as u32, 0);
    set.map_err(|error| MapError::new(map::BYPASS, error))
}

fn open(pins: &Pins) -> Result<Array<MapData, u32>, MapError> {
    let path = pins.map(map::BYPASS);
    let data = MapData::from_pin(&path).map_err(|error| match cause(&error) {
        Some(io::ErrorKind::NotFound) => MapError::new(
            map::BYPASS,
            format!("{} is missing, so there is nothing to bypass; if limiter runs with another --pin-dir, give it here too", path.display()),
        ),
        Some(io::ErrorKind::PermissionDenied) => {
            MapError::new(map::BYPASS, "not allowed; run as root, or with the capability CAP_BPF")
        }
        _ => MapError::new(map::BYPASS, error),
    })?;
    Array::try_from(Map::Array(data)).map_err(|error| MapError::new(map::BYPASS, error))
}

fn cause(error: &AyaMapError) -> Option<io::ErrorKind> {
    match error {
        AyaMapError::SyscallError(call) => Some(call.io_error.kind()),
        _ => None,
    }
}
