// Debian's Abseil is built without ThreadSanitizer, which therefore does not know what an absl::Mutex
// keeps in order, and reports races where there are none. --config=tsan links this into every
// program: the linker (--wrap) has locking and unlocking come by here. Abseil built from source has
// other symbols and tells the sanitizer by itself; then nothing comes by.
extern "C" {

void __tsan_acquire(void* address);
void __tsan_release(void* address);

__attribute__((weak)) void RealLock(void* mutex) __asm__("__real__ZN4absl7debian35Mutex4LockEv");
__attribute__((weak)) void RealUnlock(void* mutex) __asm__(
    "__real__ZN4absl7debian35Mutex6UnlockEv");
void WrappedLock(void* mutex) __asm__("__wrap__ZN4absl7debian35Mutex4LockEv");
void WrappedUnlock(void* mutex) __asm__("__wrap__ZN4absl7debian35Mutex6UnlockEv");

void WrappedLock(void* mutex) {
  RealLock(mutex);
  __tsan_acquire(mutex);
}

void WrappedUnlock(void* mutex) {
  __tsan_release(mutex);
  RealUnlock(mutex);
}

}  // extern "C"
