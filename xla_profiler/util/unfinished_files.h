// The files that an interrupted process must not leave behind. Whoever writes one registers it;
// a signal handler removes all that are registered, and lets the process end.
#ifndef XLA_PROFILER_UTIL_UNFINISHED_FILES_H_
#define XLA_PROFILER_UTIL_UNFINISHED_FILES_H_

#include <string>

namespace meridian {

// Registers a file while it lives. Begin before the file is made, and end when it has been removed
// or given its final name. Of more than 4,096 at a time the others are not registered.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(std::string path);
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  // Of the registry; negative when it was full.
  int slot_ = -1;
};

// Removes the registered files; they may be missing. Safe in a signal handler. The process must end
// afterwards: threads that register or unregister a file now wait for that.
void RemoveUnfinishedFiles();

}  // namespace meridian

#endif  // XLA_PROFILER_UTIL_UNFINISHED_FILES_H_
