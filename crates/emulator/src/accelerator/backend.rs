//! The accelerator as what a program cache compiles with.

use telltale_program_cache::{
    Backend, InterruptCheck, ProgramArguments, ProgramDescriptor, UpdateError, Updates,
};

use super::{Accelerator, CompileError, CompiledProgram};
use crate::interrupts;

impl Backend for Accelerator {
    type Program = CompiledProgram;
    type Error = CompileError;

    fn compile(&self, descriptor: &ProgramDescriptor) -> Result<CompiledProgram, CompileError> {
        Self::compile(self, descriptor)
    }

    fn lacking_bytes(&self, error: &CompileError) -> Option<u64> {
        error.lacking_bytes()
    }

    /// One `stat` for each file that its kernels were made from and for each path where a header
    /// would come before one of these; nothing for kernels whose source is a text without includes.
    #[inline]
    fn is_current(&self, program: &mut CompiledProgram) -> bool {
        program.files.are_unchanged()
    }

    /// Programs that were enqueued are kept until they have run. What went wrong before is left to
    /// be reported by [`Accelerator::finish`].
    fn reclaim(&self) {
        self.catch_up();
    }

    /// What [`crate::interrupt_waits`] was given.
    fn interrupt_check(&self) -> Option<InterruptCheck> {
        interrupts::check()
    }

    fn apply(
        &self,
        program: &mut CompiledProgram,
        updates: Updates<'_>,
    ) -> Result<(), UpdateError> {
        updates.write_to(&mut program.arguments)
    }

    fn arguments<'a>(&self, program: &'a CompiledProgram) -> &'a ProgramArguments {
        &program.arguments
    }

    /// Its kernels' code on the chip and its words on the host. Circular buffers do not count:
    /// all programs share the region of the one that needs most.
    fn weight_bytes(&self, program: &CompiledProgram) -> u64 {
        let words = size_of_val(program.arguments.words());
        program.loaded.residence.code_bytes() + words as u64
    }
}
