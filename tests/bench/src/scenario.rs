//! One thing that is measured by test-run, set up and warm, and one slice of it. Knows nothing of rounds,
//! medians and floors; what there is to measure is said in `setup`.

use std::os::fd::OwnedFd;

use anyhow::{Result, ensure};

use crate::measure::{self, Runner};
use crate::product::{Product, Shares};

/// How each slice begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// Where the last one ended.
    Same,
    /// With every count at zero, so that no limit is used up.
    Anew,
    /// With an empty table too.
    Empty,
}

/// How packets must leave.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    Anything,
    Refused,
    Admitted,
}

/// Programs that run at once, each on its CPU, and all they need.
pub(crate) struct Scenario {
    pub(crate) runners: Vec<Runner>,
    /// Runs before each slice this many times, unmeasured.
    pub(crate) warm: Option<(Runner, u32)>,
    pub(crate) frame: Vec<u8>,
    /// In a slice.
    pub(crate) packets: u32,
    pub(crate) begin: Begin,
    pub(crate) expect: Expect,
    pub(crate) product: Option<Product>,
    /// Tables behind the wrappers; they empty themselves when let go.
    pub(crate) tables: Vec<OwnedFd>,
    /// How packets left in the last slice.
    pub(crate) shares: Option<Shares>,
}

impl Scenario {
    /// Of programs that need no product, and leave packets as they like.
    pub(crate) fn new(runners: Vec<Runner>, frame: Vec<u8>, packets: u32) -> Self {
        Self {
            runners,
            warm: None,
            frame,
            packets,
            begin: Begin::Same,
            expect: Expect::Anything,
            product: None,
            tables: Vec::new(),
            shares: None,
        }
    }

    /// Nanoseconds per packet over one slice.
    pub(crate) fn slice(&mut self) -> Result<f64> {
        self.begin()?;
        let before = self.product.as_ref().map(Product::tally).transpose()?;
        let nanos = measure::run(&self.runners, &self.frame, self.packets)?;
        if let (Some(product), Some(before)) = (&self.product, before) {
            let shares = product.tally()?.since(before);
            self.check(shares)?;
            self.shares = Some(shares);
        }
        Ok(nanos)
    }

    fn begin(&mut self) -> Result<()> {
        match (&mut self.product, self.begin) {
            (Some(product), Begin::Anew) => product.renew()?,
            (Some(product), Begin::Empty) => product.renew_empty()?,
            (None, _) | (_, Begin::Same) => {}
        }
        if let Some((runner, packets)) = &self.warm {
            measure::run(std::slice::from_ref(runner), &self.frame, *packets)?;
        }
        // The first packets of every slice meet cold code.
        measure::run(&self.runners, &self.frame, 1_000).map(drop)
    }

    /// A figure is worth nothing if packets didn't go the way it is about.
    fn check(&self, shares: Shares) -> Result<()> {
        let met = match self.expect {
            Expect::Anything => 1.0,
            Expect::Refused => shares.refused,
            Expect::Admitted => shares.admitted,
        };
        ensure!(
            met > 0.98,
            "only {:.1} % of the packets went the way that is measured",
            met * 100.0
        );
        Ok(())
    }

    /// What is worth knowing beside the figure.
    pub(crate) fn note(&self) -> String {
        let (Some(product), Some(shares)) = (&self.product, self.shares) else {
            return String::new();
        };
        let percent = |share: f64| share * 100.0;
        let (fill, passed) = (percent(product.fill()), percent(shares.admitted));
        let crowded = match percent(shares.crowded) {
            0.0 => String::new(),
            share => format!(", {share:.2} without a slot in 100 packets"),
        };
        format!("{passed:.0} % passed, table {fill:.1} % full{crowded}")
    }
}
