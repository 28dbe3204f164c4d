# fastlinalg_set_rpath(<target> [DESTINATION <folder>])
#
# Lets an installed program, library or extension module find the shared library of fastlinalg when it is run. For
# projects that have found the package, and for those that embed the sources. DESTINATION is what install(TARGETS) gets:
# the folder below the install prefix, by default bin for programs, lib for libraries, the prefix itself for modules.
#
# What is installed together moves together: the path is relative where the library lies below the same prefix, or in
# the package of a wheel beside the one that scikit-build-core makes. Else it is that of the library that was found.
function(fastlinalg_set_rpath target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "DESTINATION" "")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "fastlinalg_set_rpath: unknown arguments: ${arg_UNPARSED_ARGUMENTS}; "
                        "wanted: <target> [DESTINATION <folder>]")
  elseif(NOT TARGET "${target}")
    message(FATAL_ERROR "fastlinalg_set_rpath: there is no target '${target}'")
  endif()
  if(NOT DEFINED arg_DESTINATION)
    get_target_property(type ${target} TYPE)
    set(arg_DESTINATION "lib")
    if(type STREQUAL "EXECUTABLE")
      set(arg_DESTINATION "bin")
    elseif(type STREQUAL "MODULE_LIBRARY")
      set(arg_DESTINATION ".")
    endif()
  endif()
  set(prefix "${CMAKE_INSTALL_PREFIX}")
  cmake_path(ABSOLUTE_PATH arg_DESTINATION BASE_DIRECTORY "${prefix}" NORMALIZE OUTPUT_VARIABLE destination)

  get_target_property(imported fastlinalg::fastlinalg IMPORTED)
  if(NOT imported)
    set(folder "${prefix}/lib")
  elseif(fastlinalg_IN_PYTHON_PACKAGE AND SKBUILD)
    set(prefix "${SKBUILD_PLATLIB_DIR}")
    set(folder "${prefix}/fastlinalg/lib")
  else()
    set(folder "${fastlinalg_LIBRARY_DIR}")
  endif()
  cmake_path(IS_PREFIX prefix "${folder}" NORMALIZE is_below)
  if(is_below)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${destination}")
    set(folder "$ORIGIN/${folder}")
  endif()
  set_property(TARGET ${target} APPEND PROPERTY INSTALL_RPATH "${folder}")
endfunction()
